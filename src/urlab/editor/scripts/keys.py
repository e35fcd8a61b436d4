"""The keyboard on the page: the one table of hotkeys, and which keys that drive are held.

viser has hotkeys of its own, but tells nothing of a key's release. So the page gets a script of ours, which opens a
second websocket at `PATH`. It sends every key of the table that is not typed into a field, and of the keys that drive
all that are held, again and again: when it is not heard any more, whatever the reason, the robot stops. So does the
body that a pointer drags, which is why the script also says that a pointer is down. A key that cannot be sent is named
on the page. Buttons with ``data-urlab-key`` are such keys for a pointer or a finger.
`appearance` uses the same websocket.
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
_HELD = frozenset(one.key for one in TWIST_KEYS if one.key != _STOP_KEY)
"""Keys that drive while they are held."""
_PRESSED = frozenset((HELP_KEY, _STOP_KEY, *(one.key for one in HOTKEYS)))
_TELL_S, _SILENT_S = 0.3, 2.0
"""How often a page tells what is held, and after how long without a word it is let go."""

SCRIPT = """<script>(() => {
  const drives = new Set(HELD), keys = new Set([...drives, ...PRESSED]);
  const named = {" ": "space", "Tab": "tab"}, held = new Set();
  let socket = null, fading = 0, isPointerDown = false;
  const page = () => document.querySelector("[data-urlab-page]")?.dataset.urlabPage;
  const open = () => {
    const query = new URLSearchParams(location.search).get("token");
    const base = location.href.replace(/^http/, "ws").replace(/[?#].*$/, "").replace(/\\/$/, "");
    socket = new WebSocket(base + "PATH" + (query ? "?token=" + encodeURIComponent(query) : ""));
    socket.onopen = () => tellHeld();
    socket.onmessage = (event) => warnOfKey(JSON.parse(event.data).lost);
    socket.onclose = () => setTimeout(open, 2000);
  };
  const tell = (what) => {
    if (!page() || socket.readyState !== 1) return false;
    socket.send(JSON.stringify({page: page(), ...what}));
    return true;
  };
  const tellHeld = () => tell({held: [...held].filter((key) => drives.has(key))});
  window.urlabTell = tell;
  const warn = (text) => {
    let notice = document.getElementById("urlab-warning");
    if (!notice) {
      notice = document.createElement("div");
      notice.id = "urlab-warning";
      notice.role = "alert";
      notice.style.cssText = "position:fixed;z-index:1000;top:40%;left:50%;translate:-50%;max-width:min(40em,90vw);" +
        "padding:0.6em 1em;border-radius:4px;font:14px/1.4 system-ui;color:#fff;background:#b02a2a;pointer-events:none";
      document.body.append(notice);
    }
    notice.textContent = text;
    clearTimeout(fading);
    fading = setTimeout(() => notice.remove(), 2000 + 60 * text.length);
  };
  window.urlabWarn = warn;
  const warnOfKey = (key) => warn(`Not connected to the server: the key ${key.toUpperCase()} has no effect.`);
  const isTyped = (target) => target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) ||
     target.getAttribute("role") === "slider" || target.closest("[role=dialog]"));
  const on = (event, down) => {
    const key = named[event.key] || (event.key.length === 1 ? event.key.toLowerCase() : event.key);
    const isOther = event.ctrlKey || event.metaKey || event.altKey || isTyped(event.target) || key === "tab" ||
      (key === "space" && event.target instanceof Element && event.target.closest("button, [role=tab], [role=button]"));
    if (down ? isOther || !keys.has(key) : !held.has(key)) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    hold(key, down);
  };
  const hold = (key, down) => {
    if (down === held.has(key)) return;
    if (down) held.add(key); else held.delete(key);
    const isTold = drives.has(key) ? tellHeld() : !down || tell({key});
    if (down && !isTold) warnOfKey(key);
  };
  const pad = new Map();
  const padKey = (event) => event.target instanceof Element &&
    event.target.closest("button[data-urlab-key]")?.dataset.urlabKey;
  const letGo = (by) => { if (pad.has(by)) { hold(pad.get(by), false); pad.delete(by); } };
  const letAllGo = () => { held.clear(); pad.clear(); tellHeld(); };
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
  addEventListener("blur", letAllGo);
  addEventListener("pagehide", letAllGo);
  document.addEventListener("visibilitychange", () => { if (document.hidden) letAllGo(); });
  addEventListener("pointerdown", () => { isPointerDown = true; }, true);
  for (const end of ["pointerup", "pointercancel", "blur", "pagehide"])
    addEventListener(end, () => { isPointerDown = false; }, true);
  setInterval(() => {
    if (isPointerDown || [...held].some((key) => drives.has(key))) tellHeld();
  }, TELL_MS);
  open();
})();</script>"""
for _word, _value in (
    ("HELD", json.dumps(sorted(_HELD))),
    ("PRESSED", json.dumps(sorted(_PRESSED))),
    ("PATH", PATH),
    ("TELL_MS", str(round(1000 * _TELL_S))),
):
    SCRIPT = SCRIPT.replace(_word, _value)


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
        """One page's keys, until it closes or falls silent; a robot that it drives then stops."""
        held: list[str] = []
        drives = False
        try:
            while True:
                told = await self._next(connection, _SILENT_S if held else None)
                page = next((one for one in self._editor.pages if one.key == told.get("page")), None)
                wanted = held if page is not None else []
                if page is not None:
                    self._editor.drag.hear(page.number)
                if page is None:
                    await self._refuse(connection, told)
                elif "dark" in told:
                    await asyncio.to_thread(page.set_dark, bool(told["dark"]))
                elif (key := str(told.get("key"))) in _PRESSED:
                    await asyncio.to_thread(self._do, page, key)
                elif isinstance(told.get("held"), list):
                    wanted = [key for key in map(str, told["held"]) if key in _HELD]
                if wanted != held:
                    held = wanted
                    drives = await asyncio.to_thread(self._drive, page, held, drives)
        except ConnectionClosed:
            pass
        finally:
            await asyncio.to_thread(self._drive, None, [], drives)

    async def _next(self, connection: ServerConnection, patience_s: float | None) -> dict[str, Any]:
        """What the page tells next; nothing if that cannot be read, or does not come in time."""
        with contextlib.suppress(ValueError, TimeoutError):
            async with asyncio.timeout(patience_s):
                told = json.loads(await connection.recv())
            return told if isinstance(told, dict) else {}
        return {}

    async def _refuse(self, connection: ServerConnection, told: dict[str, Any]) -> None:
        """A page that is not known, as it was away and is on its way back, is told of the key that does nothing."""
        keys = [told["key"]] if "key" in told else told.get("held")
        if isinstance(keys, list) and keys:
            await connection.send(json.dumps({"lost": str(keys[-1])}))

    def _drive(self, page: "Page | None", held: list[str], drives: bool) -> bool:
        """Go on with the key that was pressed last of those that are held, or stop; whether the page drives now.

        The page may have lost its right to change things, or be gone: what it drives stops all the same.
        """
        if page is not None and held:
            return self._do(page, held[-1], drives=drives) or drives
        if drives:
            try:
                self._editor.note(self._editor.link.change(lambda client: self._press(client, _STOP_KEY)) or "stop")
            except FAILURES as failed:
                self._editor.note(f"stop: {failed}", is_error=True)
        return False

    def _do(self, page: "Page", key: str, *, drives: bool = False) -> bool:
        """Whether it was done. On a thread: a server that answers late must not hold up viser's event loop."""
        if key == HELP_KEY:
            page.show_html("Keys", key_table())
            return True
        said = page.change(f"key {key}", lambda client: self._press(client, key, drives=drives))
        if said:
            self._editor.note(said)
        return said is not None

    def _press(self, client: URLabClient, key: str, *, drives: bool = False) -> str | None:
        """A key that drives is for the selected robot; the one that stops, for the robot that was driven last.

        ``drives`` says that one is driven now: it stops when another is selected meanwhile.
        """
        hotkeys, world = self._editor.hotkeys(client), self._editor.feed.world
        selected = None if world is None else world.view.selected
        if key in _HELD and selected in client.articulations and selected != hotkeys.robot:
            if drives and hotkeys.robot in client.articulations:
                hotkeys.press(_STOP_KEY)
            hotkeys.robot = selected
        return hotkeys.press(key)
