"""Recordings: record, save, list, replay with a scrub bar, download as a film."""

import threading
from functools import partial
from pathlib import Path
from typing import Any

from viser import Icon

from urlab.editor.feed import ShownWorld
from urlab.editor.panels.base import Panel
from urlab.editor.panels.play import SpeedSlider
from urlab_client import URLabClient
from urlab_client.types import ExportStatus, ReplayStatus

_NONE = "(none)"
_LOOK_S = 0.3


class RecordingPanel(Panel):
    """A recorder above, a player below."""

    title = "Record"
    icon = Icon.PLAYER_RECORD
    order = 40

    def build(self) -> None:
        """Recorder, list, player, film."""
        page, gui = self.page, self.gui
        self._recorder = page.acting(gui.add_button_group("Record", ("Start", "Stop", "Save")))
        self._recorder.on_click(lambda _: self._press(self._recorder.value))
        self._state = gui.add_markdown("")
        with gui.add_folder("Replay"):
            self._files = page.acting(gui.add_dropdown("Recording", (_NONE,)))
            self._player = page.acting(gui.add_button_group("Replay", ("Play", "Pause", "Stop")))
            self._player.on_click(lambda _: self._replay(self._player.value))
            self._scrub = page.acting(gui.add_slider("Frame", min=0, max=1, step=1, initial_value=0))
            self._scrub.on_update(self._seek)
            self._speed = SpeedSlider(page)
        with gui.add_folder("Film", expand_by_default=False):
            film = page.acting(gui.add_button("Make a film", icon=Icon.MOVIE, hint="Then the browser downloads it."))
            film.on_click(lambda _: self._film())
            self._progress: Any = gui.add_progress_bar(0.0, visible=False)
        self._replaying: ReplayStatus | None = None
        self._is_closed = threading.Event()

    def close(self) -> None:
        """A film that is being made goes on; no thread waits for it here."""
        self._is_closed.set()

    def _press(self, word: str) -> None:
        actions: dict[str, Any] = {
            "Start": ("start recording", lambda client: client.recording.start()),
            "Stop": ("stop recording", lambda client: client.recording.stop()),
            "Save": ("save the recording", lambda client: client.recording.save()),
        }
        what, work = actions[word]
        done = self.page.change(what, work)
        if word == "Save" and done is not None:
            self.page.tell("Saved", str(done))
            self._list()

    def _list(self) -> None:
        found = self.page.read(lambda client: client.recording.list()) or []
        self._files.options = tuple(one.name for one in found) or (_NONE,)

    def show_model(self, world: ShownWorld) -> None:  # noqa: ARG002 - for every panel
        """Recordings belong to the project."""
        self._list()

    # -- replay -----------------------------------------------------------------------------------------------------

    def _replay(self, word: str) -> None:
        if word == "Stop":
            self.page.change("stop the replay", lambda client: client.replay.stop())
        elif word == "Pause":
            self.page.change("pause the replay", lambda client: client.runtime.set_paused(True))
        elif self._replaying is not None and self._replaying.active_session in (self._files.value, self._file_stem()):
            self.page.change("go on", lambda client: client.runtime.set_paused(False))
        elif self._files.value != _NONE:
            name = self._files.value
            self.page.change(f"replay {name}", lambda client: client.replay.play(name, paused=False))

    def _file_stem(self) -> str:
        """What a session of the chosen recording is called."""
        return Path(self._files.value).stem

    def _seek(self, event: Any) -> None:
        if event.client is not None and self._replaying is not None:
            self.page.change("seek", lambda client: client.replay.seek(int(self._scrub.value)))

    def show_status(self, world: ShownWorld) -> None:
        """How long the recording is, and where the replay stands."""
        status = world.status
        self._replaying = None if status is None else status.replay
        if self._replaying is not None:
            last = max(1, self._replaying.total_frames - 1)
            if self._scrub.max != last:
                self._scrub.max = last
            self.page.follow(self._scrub, int(min(last, self._replaying.frame)))
        self._speed.show(status)
        self._state.content = self.page.editor.recording

    # -- film -------------------------------------------------------------------------------------------------------

    def _film(self) -> None:
        name = self._files.value
        if name == _NONE:
            self.page.tell("There is no recording", "Save one first.", is_error=True)
            return
        film = self.page.change(f"make a film of {name}", lambda client: client.recording.export(name, wait=False))
        if film is None:
            return
        self._progress.visible = True
        while film is not None and film.is_unfinished:
            if self._is_closed.wait(_LOOK_S):
                return
            found = self.page.read(partial(_status, film.export_id))
            film = found[0] if found else None
            if film is not None:
                self._progress.value = 100.0 * film.done / max(1, film.total)
        self._progress.visible = False
        if film is None:
            self.page.tell(
                "The film is lost from sight", "The server does not answer; it may still make it.", is_error=True
            )
        elif film.message:
            self.page.tell("The film could not be made", film.message, is_error=True)
        else:
            self._download(Path(film.path))

    def _download(self, film: Path) -> None:
        try:
            self.page.client.send_file_download(film.name, film.read_bytes(), save_immediately=True)
        except OSError as failed:
            self.page.tell("The film cannot be read", str(failed), is_error=True)


def _status(export_id: str, client: URLabClient) -> list[ExportStatus]:
    return client.recording.export_status(export_id)
