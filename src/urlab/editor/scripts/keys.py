"""The keyboard on the page: the one table of hotkeys, told key by key, so that a key that is held is also let go.

viser has hotkeys of its own, but tells nothing of a key's release. So the page gets a script of ours, which opens a
second websocket at `PATH` and sends every key of the table, down and up, that is not typed into a field. Buttons with
``data-urlab-key`` are such keys for a pointer or a finger. `appearance` uses the same websocket.
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
  const tell = (what) => {
    if (!page() || socket.readyState !== 1) return false;
    socket.send(JSON.stringify({page: page(), ...what}));
    return true;
  };
  const send = (key, down) => tell({key, down});
  window.urlabTell = tell;
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
    hold(key, down);
  };
  const hold = (key, down) => {
    if (down === held.has(key)) return;
    if (down) held.add(key); else held.delete(key);
    send(key, down);
  };
  const pad = new Map();
  const padKey = (event) => event.target instanceof Element &&
    event.target.closest("button[data-urlab-key]")?.dataset.urlabKey;
  const letGo = (by) => { if (pad.has(by)) { hold(pad.get(by), false); pad.delete(by); } };
  addEventListener("pointerdown", (event) => {
    const key = padKey(event);
    if (!key || event.button !== 0) return;
    pad.set(event.pointerId, key);
    hold(key, true);
  }, true);
  for (const end of ["pointerup", "pointercancel"])
    addEventListener(end, (event) => letGo(event.pointerId), true);
  addEventListener("keydown", (event) => {
    const key = [" ", "Enter"].includes(event.key) && padKey(event);
    if (key && !event.repeat) { pad.set(event.key, key); hold(key, true); }
  }, true);
  addEventListener("keyup", (event) => letGo(event.key), true);
  addEventListener("contextmenu", (event) => { if (padKey(event)) event.preventDefault(); }, true);
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


def twist_pad() -> str:
    """Buttons that drive the selected robot while they are held, as HTML."""
    cells = (("q", "\u21ba"), ("w", "\u2191"), ("e", "\u21bb"), ("a", "\u2190"), ("s", "\u2193"), ("d", "\u2192"))
    words = {one.key: one.help for one in TWIST_KEYS}
    style = "min-height:2.6em;font-size:1.1em;touch-action:none;user-select:none;cursor:pointer"
    buttons = (
        f'<button type="button" data-urlab-key="{key}" aria-label="{words[key]}" title="{words[key]} ({key.upper()})" '
        f'style="{style}">{sign}</button>'
        for key, sign in cells
    )
    columns = "display:grid;grid-template-columns:repeat(3,1fr);gap:0.4em;padding:0 1em 0.6em"
    return f'<div role="group" aria-label="drive" style="{columns}">{"".join(buttons)}</div>'


class PageKeys:
    """Does what the keys of pages say."""

    def __init__(self, editor: "Editor") -> None:
        self._editor = editor

    async def serve(self, connection: ServerConnection) -> None:
        """One page's keys, until it closes; a robot that is driven then stops."""
        held: list[str] = []
        try:
            async for message in connection:
                page, told = self._read(message)
                if page is None:
                    continue
                if "dark" in told:
                    await asyncio.to_thread(page.set_dark, bool(told["dark"]))
                    continue
                key = str(told.get("key"))
                if key not in _KEYS:
                    continue
                if told.get("down"):
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

    def _read(self, message: Any) -> "tuple[Page | None, dict[str, Any]]":
        """Which page said what; None where it cannot be read, or names no page that is open."""
        try:
            told = json.loads(message)
            return next((one for one in self._editor.pages if one.key == told["page"]), None), told
        except (ValueError, TypeError, KeyError):
            return None, {}

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
