"""The editor: a viser server behind the gate, the world in it, and a page for each browser tab."""

import contextlib
import itertools
import logging
import socket as sockets
import ssl
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import Any

import viser

from urlab.editor.controls import Controls
from urlab.editor.decorations import Decorations
from urlab.editor.dragging import BodyDrag
from urlab.editor.feed import ShownWorld, WorldFeed
from urlab.editor.gate import PageGate, behind
from urlab.editor.page import Page
from urlab.editor.pictures import BlueprintPictures, CameraFrames
from urlab.editor.scripts.appearance import SCRIPT as APPEARANCE
from urlab.editor.scripts.keys import PATH, SCRIPT, PageKeys
from urlab.editor.scripts.uploads import SCRIPT as UPLOADS
from urlab.editor.server_link import FAILURES, ServerLink
from urlab.editor.shared_camera import SharedCamera
from urlab.editor.soft_bodies import SoftBodies
from urlab.editor.world_scene import WorldScene
from urlab_client import URLabClient
from urlab_client.hotkeys import Hotkeys
from urlab_client.namespaces.viewport import WorldView
from urlab_client.types import ContactsResult, LevelStatus

log = logging.getLogger("urlab.editor")

_KEPT_NOTES = 500
_FRESH_S = 0.15
_MOST_CONTACTS = 256
_LEVEL_PERIOD_S = 1.0


class Notes:
    """What happened, for the log of all pages: the server's own log, and what the pages add. Any thread may add."""

    def __init__(self) -> None:
        self._lines: deque[tuple[str, str, bool]] = deque(maxlen=_KEPT_NOTES)
        self._last_record = 0
        self.count = 0

    def add(self, text: str, *, is_error: bool = False, at_s: float | None = None) -> None:
        """Keep a line, with the time of now or, in seconds since 1970, another."""
        self._lines.append((time.strftime("%H:%M:%S", time.localtime(at_s)), text, is_error))
        self.count += 1

    def follow(self, link: ServerLink) -> None:
        """Add what is new in the server's log: ops of every client that changed the world, warnings and errors."""
        for record in link.read(lambda client: client.sim.recent_log(self._last_record)):
            self._last_record = record.number
            by = f" ({record.session or record.caller})" if record.op else ""
            self.add(record.message + by, is_error=record.level not in ("debug", "info"), at_s=record.time)

    def newest(self, number: int) -> list[tuple[str, str, bool]]:
        """The last lines, the newest first: when, what, whether it is an error."""
        return list(itertools.islice(reversed(self._lines), number))


class Editor:
    """Serves the page on a socket that listens already. ``first``: what there is to see, if it is being read."""

    def __init__(
        self,
        link: ServerLink,
        gate: PageGate,
        listener: sockets.socket,
        *,
        tls: ssl.SSLContext | None = None,
        first: Future[tuple[WorldView, Any]] | None = None,
    ) -> None:
        self.link = link
        self.notes = Notes()
        self.pictures, self.cameras = BlueprintPictures(link), CameraFrames(link)
        self._pages: dict[int, Page] = {}
        self._pages_lock = threading.Lock()
        self._hotkeys: Hotkeys | None = None
        self._recording = ""
        self.level: LevelStatus | None = None
        """Whether the level that is edited has changes, and what can be undone; None until the server has said so."""
        self._level_due_s = 0.0
        self._contacts: tuple[float, ContactsResult] | None = None
        keyboard = PageKeys(self)
        with behind(gate, listener, tls, routes={PATH: keyboard.serve}, script=SCRIPT + APPEARANCE + UPLOADS):
            self._viser = viser.ViserServer(host="127.0.0.1", port=0, label="URLab", verbose=False)
        self._viser.scene.set_up_direction("+z")
        self._viser.scene.world_axes.visible = False
        self._viser.scene.configure_environment_map(None)  # only the model's lights; it took 5 s to make without a GPU
        self.controls = Controls(self._show_controls)
        self.drag = BodyDrag(self)
        self.camera = SharedCamera(self)
        self._decorations, self._soft_bodies = Decorations(self._viser), SoftBodies(self._viser)
        self._scene = WorldScene(self._viser, self._click, self.drag.handle)
        self.feed = WorldFeed(
            link,
            first=first,
            is_watched=lambda: bool(self._pages),
            on_model=self._show_model,
            on_state=self._show_state,
            on_status=self._show_status,
        )
        self._viser.on_client_connect(self._open_page)
        self._viser.on_client_disconnect(self._close_page)
        self.feed.start()

    def close(self) -> None:
        """End it; what the pages held is released."""
        self.feed.close()
        self.drag.close()
        self._viser.stop()
        self.link.close()

    # -- what pages use ---------------------------------------------------------------------------------------------

    @property
    def pages(self) -> list[Page]:
        """Those that are open."""
        with self._pages_lock:
            return list(self._pages.values())

    @property
    def recording(self) -> str:
        """What the recorder says of itself, in a line."""
        return self._recording

    def contacts(self) -> ContactsResult:
        """The contacts of the scene that plays, of about now, asked for once however many pages show them."""
        if self._contacts is None or time.monotonic() - self._contacts[0] > _FRESH_S:
            found = self.link.read(lambda client: client.runtime.get_contacts(max_contacts=_MOST_CONTACTS))
            self._contacts = time.monotonic(), found
        return self._contacts[1]

    def note(self, text: str, *, is_error: bool = False) -> None:
        """Keep a line in the log of all pages."""
        self.notes.add(text, is_error=is_error)

    def hotkeys(self, client: URLabClient) -> Hotkeys:
        """The table of keys, at work on the client that changes the world."""
        if self._hotkeys is None:
            self._hotkeys = Hotkeys(client)
        return self._hotkeys

    # -- pages ------------------------------------------------------------------------------------------------------

    def _open_page(self, client: viser.ClientHandle) -> None:
        page = Page(self, client)
        with self._pages_lock:
            self._pages[page.number] = page
        self.controls.add(page.number)
        self.camera.place(client)
        world = self.feed.world
        if world is not None:
            page.show_model(world)
            page.show_status(world)
        self.feed.wake()

    def _close_page(self, client: viser.ClientHandle) -> None:
        with self._pages_lock:
            page = self._pages.pop(client.client_id, None)
        if page is not None:
            page.close()
            self.controls.remove(page.number)
            self.camera.forget(page.number)

    def _show_controls(self) -> None:
        self.drag.keep_for(self.controls.holder)
        for page in self.pages:
            page.show_controls()

    # -- the world --------------------------------------------------------------------------------------------------

    def _show_model(self, world: ShownWorld) -> None:
        if world.view.playing:
            self._hotkeys = None  # it may drive a robot that is no more
        self._scene.show(world.model, world.data, world.actors)
        for page in self.pages:
            page.show_model(world)

    def _show_state(self, world: ShownWorld) -> None:
        transparent = bool(world.view.overlays.get("transparent", False))
        self._scene.set_mode(world.view.mode, transparent=transparent, data=world.data)
        self._scene.update(world.data, world.view.selected)
        self._decorations.update(world)
        self._soft_bodies.update(world)
        self.camera.follow(world)

    def _show_status(self, world: ShownWorld) -> None:
        self._recording = self._recorded() if world.view.playing else ""
        with contextlib.suppress(*FAILURES):  # the feed says that the server is away
            self.notes.follow(self.link)
            if time.monotonic() >= self._level_due_s:
                self._level_due_s = time.monotonic() + _LEVEL_PERIOD_S
                self.level = self.link.read(lambda client: client.scene.level_status())
        for page in self.pages:
            page.show_status(world)

    def _recorded(self) -> str:
        try:
            recorded = self.link.read(lambda client: client.recording.status())
        except FAILURES:
            return ""  # the level was stopped since the view was read
        state = "recording" if recorded.active else "recorded"
        return (
            f"{state}: {recorded.frame_count} frames, {recorded.sim_duration_s:.1f} s" if recorded.frame_count else ""
        )

    async def _click(self, event: Any, body: int) -> None:
        page, world = self._pages.get(event.client_id), self.feed.world
        if page is None or world is None:
            return
        actor = next((name for name, bodies in world.actors.items() if body in bodies), None)
        if actor is not None:
            threading.Thread(target=self.select, args=(page, actor), daemon=True).start()

    def select(self, page: Page, actor: str) -> None:
        """Select an actor, for every view."""
        page.change(f"select {actor}", lambda client: client.outliner.select_actor(actor, by_name=True))
