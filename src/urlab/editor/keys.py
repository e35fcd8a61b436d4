"""The keyboard on the page: the one table of hotkeys, told key by key, so that a key that is held is also let go.

viser has hotkeys of its own, but tells nothing of a key's release. So the page gets a script of ours, which opens a
second websocket at `PATH` and sends every key of the table, down and up, that is not typed into a field.
"""

import asyncio
import contextlib
import json
import logging
from html import escape
from typing import TYPE_CHECKING, Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from urlab.editor.server_link import FAILURES
from urlab_client import URLabClient
from urlab_client.hotkeys import HOTKEYS, TWIST_KEYS

if TYPE_CHECKING:
    from urlab.editor.editor import Editor
    from urlab.editor.page import Page

log = logging.getLogger("urlab.editor")

PATH = "/urlab/keys"
HELP_KEY = "?"
_STOP_KEY = "x"
_TWIST = frozenset(one.key for one in TWIST_KEYS)
_KEYS = [HELP_KEY, *(one.key for one in HOTKEYS), *_TWIST]

SCRIPT = """<script>(() => {
  const keys = new Set(KEYS), named = {" ": "space", "Tab": "tab"}, held = new Set();
  let socket = null;
  const page = () => document.querySelector("[data-urlab-page]")?.dataset.urlabPage;
  const open = () => {
    const query = new URLSearchParams(location.search).get("token");
    const base = location.href.replace(/^http/, "ws").replace(/[?#].*$/, "").replace(/\\/$/, "");
    socket = new WebSocket(base + "PATH" + (query ? "?token=" + encodeURIComponent(query) : ""));
    socket.onclose = () => { held.clear(); setTimeout(open, 2000); };
  };
  const send = (key, down) => {
    if (page() && socket.readyState === 1) socket.send(JSON.stringify({page: page(), key, down}));
  };
  const isTyped = (target) => target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) ||
     target.getAttribute("role") === "slider" || target.closest("[role=dialog]"));
  const on = (event, down) => {
    const key = named[event.key] || (event.key.length === 1 ? event.key.toLowerCase() : event.key);
    if (!keys.has(key) || event.ctrlKey || event.metaKey || event.altKey) return;
    const isButton = event.target instanceof HTMLButtonElement;
    if (down && (isTyped(event.target) || key === "tab" || (isButton && key === "space"))) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    if (down === held.has(key)) return;
    if (down) held.add(key); else held.delete(key);
    send(key, down);
  };
  addEventListener("keydown", (event) => on(event, true), true);
  addEventListener("keyup", (event) => on(event, false), true);
  addEventListener("blur", () => { for (const key of [...held]) { held.delete(key); send(key, false); } });
  open();
})();</script>""".replace("KEYS", json.dumps(_KEYS)).replace("PATH", PATH)


def key_table() -> str:
    """Every key that works on a page, as HTML; W A S D Q E are for the selected robot."""
    listed = [(HELP_KEY, "this list"), *((one.key, one.help) for one in (*HOTKEYS, *TWIST_KEYS) if one.key != "tab")]
    style = "display:inline-block;min-width:4em;font-family:monospace;font-weight:bold"
    rows = (f'<div><span style="{style}">{escape(key)}</span>{escape(text)}</div>' for key, text in listed)
    return f'<div style="columns:2;padding:0 1em">{"".join(rows)}</div>'


class PageKeys:
    """Does what the keys of pages say."""

    def __init__(self, editor: "Editor") -> None:
        self._editor = editor

    async def serve(self, connection: ServerConnection) -> None:
        """One page's keys, until it closes; a robot that is driven then stops."""
        held: list[str] = []
        try:
            async for message in connection:
                page, key, is_down = self._read(message)
                if page is None:
                    continue
                if is_down:
                    if key in _TWIST and key != _STOP_KEY:
                        held.append(key)
                    await asyncio.to_thread(self._do, page, key)
                elif key in held:
                    held.remove(key)
                    await (asyncio.to_thread(self._do, page, held[-1]) if held else asyncio.to_thread(self._stop))
        except ConnectionClosed:
            pass
        finally:
            if held:
                await asyncio.to_thread(self._stop)

    def _read(self, message: Any) -> "tuple[Page | None, str, bool]":
        try:
            told = json.loads(message)
            page = next((one for one in self._editor.pages if one.key == told["page"]), None)
            key, is_down = str(told["key"]), bool(told["down"])
        except (ValueError, TypeError, KeyError):
            return None, "", False
        return (page, key, is_down) if key in _KEYS else (None, "", False)

    def _stop(self) -> None:
        """The page may have lost its right to change things, or be gone; the robot stops all the same."""
        with contextlib.suppress(*FAILURES):
            self._editor.note(self._editor.link.change(lambda client: self._press(client, _STOP_KEY)) or "stop")

    def _do(self, page: "Page", key: str) -> None:
        """On a thread, one key after the other: a server that answers late must not hold up viser's event loop."""
        if key == HELP_KEY:
            page.show_html("Keys", key_table())
            return
        said = page.change(f"key {key}", lambda client: self._press(client, key))
        if said:
            self._editor.note(said)

    def _press(self, client: URLabClient, key: str) -> str | None:
        """A key that drives is for the selected robot; the one that stops, for the robot that was driven last."""
        hotkeys, world = self._editor.hotkeys(client), self._editor.feed.world
        selected = None if world is None else world.view.selected
        if key in _TWIST and key != _STOP_KEY and selected in client.articulations:
            hotkeys.robot = selected
        return hotkeys.press(key)
