"""A real Chromium without a window, for tests: opens pages, runs JavaScript in them, takes pictures.

It is driven over its DevTools protocol, one thread at a time. Tests get it from the fixture ``open_browser`` in
conftest.py, which skips them where there is no Chromium.
"""

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import time
import urllib.request
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from PIL import Image
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
START_S, REPLY_S = 60.0, 60.0

Place = tuple[float, float]
"""In pixels of the window, from its upper left corner."""


def find_browser() -> str | None:
    """The program, or None; the variable CHROMIUM names another one."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)


class JavaScriptError(Exception):
    """A script raised; the message is its own."""


class Browser:
    """One process with a profile of its own, in ``folder``. ``flags`` are options of its command line."""

    def __init__(self, program: str, folder: Path, *flags: str) -> None:
        profile = folder / "profile"
        self._log = folder / "log"
        self._pages: list[Page] = []
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        # /dev/shm is small in containers; nothing that it does by itself should reach the network.
        own = ["--headless=new", "--remote-debugging-port=0", "--disable-gpu", "--disable-dev-shm-usage"]
        quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
        command = [program, *own, *quiet, *sandbox, f"--user-data-dir={profile}", *flags, "about:blank"]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            self._port = self._wait_for_port(profile / "DevToolsActivePort")
        except BaseException:
            self.close()
            raise

    def open(self, url: str) -> "Page":
        """A new page, whose loading has ended."""
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=REPLY_S) as reply:
            page = Page(json.load(reply)["webSocketDebuggerUrl"])
        self._pages.append(page)
        page.go_to(url)
        return page

    def close(self) -> None:
        """End it, its pages and all its processes."""
        for page in self._pages:
            page.close()
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
        self.process.wait(START_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _wait_for_port(self, file: Path) -> int:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if file.exists() and (words := file.read_text().split()):
                return int(words[0])
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"Chromium did not start: {self._log.read_text(errors='replace')[-2000:]}")


class Page:
    """One tab."""

    def __init__(self, url: str) -> None:
        self._open = contextlib.ExitStack()
        self._socket = self._open.enter_context(connect(url, max_size=None, open_timeout=REPLY_S))
        self._numbers = itertools.count(1)
        self._events: list[dict[str, Any]] = []
        self.has_ended = False
        self.ask("Page.enable")
        self.ask("Runtime.enable")

    def go_to(self, url: str) -> None:
        """Load another address; an error page counts as loaded, and `evaluate` tells its address."""
        self.forget_events()
        self.ask("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def evaluate(self, script: str) -> Any:
        """The value of an expression, of a promise when it is settled; JavaScriptError if it raises."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            thrown = answer["exceptionDetails"]
            raise JavaScriptError(thrown.get("exception", {}).get("description") or thrown["text"])
        return answer["result"].get("value")

    def screenshot(self) -> bytes:
        """What the page shows, as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def pixels(self) -> Any:
        """What the page shows, as an array of rows of RGB."""
        return np.asarray(Image.open(BytesIO(self.screenshot())).convert("RGB"))

    def resize(self, width: int, height: int) -> None:
        """Another size of the window, for this tab alone."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < height
        )

    # -- what a person does -----------------------------------------------------------------------------------------

    def box(self, found: str) -> dict[str, float]:
        """Place and size of the element that a script finds, in the window."""
        box: dict[str, float] = self.evaluate(f"({found}).getBoundingClientRect().toJSON()")
        return box

    def place(self, found: str) -> Place:
        """The middle of the element that a script finds, once it is there, at rest and covered by no other."""
        deadline = time.monotonic() + REPLY_S
        script = f"""(async () => {{
            const place = () => {{
                const one = {found};
                one?.scrollIntoView({{block: 'nearest'}});
                const box = one?.getBoundingClientRect();
                const at = box && [box.x + box.width / 2, box.y + box.height / 2];
                const there = at && document.elementFromPoint(...at);
                const moves = document.getAnimations().some((each) => each.effect?.target?.contains(one));
                return there && !moves && (one.contains(there) || there.contains(one)) ? at : null;
            }};
            const frame = () => new Promise((done) => {{ requestAnimationFrame(done); setTimeout(done, 200); }});
            const before = place();
            for (let count = 0; count < 3; count++) await frame();
            const now = place();
            return before && now && before[0] === now[0] && before[1] === now[1] ? now : null;
        }})()"""
        while (at := self.evaluate(script)) is None:
            assert time.monotonic() < deadline, f"there is nothing to click: {found}"
            time.sleep(0.05)
        return (at[0], at[1])

    def click(self, found: str) -> None:
        """Click in the middle of the element that a script finds, once it is there, at rest and covered by no other."""
        place = self.place(found)
        self.mouse("mousePressed", place)
        self.mouse("mouseReleased", place, buttons=0)

    def drag(self, *places: Place, modifiers: int = 0) -> None:
        """Press the button at the first place, and let go of it at the last."""
        self.mouse("mouseMoved", places[0], buttons=0, modifiers=modifiers)
        self.mouse("mousePressed", places[0], modifiers=modifiers)
        for place in places[1:]:
            self.mouse("mouseMoved", place, modifiers=modifiers)
        self.mouse("mouseReleased", places[-1], buttons=0, modifiers=modifiers)

    def mouse(self, kind: str, place: Place, **more: Any) -> None:
        """One event of the mouse; ``modifiers`` are bits: 1 Alt, 2 Ctrl, 4 Meta, 8 Shift."""
        fields = {"x": place[0], "y": place[1], "button": "left", "buttons": 1, "clickCount": 1, **more}
        self.ask("Input.dispatchMouseEvent", type=kind, **fields)

    def key(self, key: str, *, down: bool = True, up: bool = True) -> None:
        """Press a key and let it go, or one of both."""
        text = {"text": key} if len(key) == 1 else {}
        if down:
            self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        if up:
            self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        """Write into the field that has the focus."""
        self.ask("Input.insertText", text=text)

    def choose_files(self, found: str, *files: Path) -> None:
        """Choose files in the input that a script finds, as in the window that it opens."""
        element = self.ask("Runtime.evaluate", expression=found)["result"]["objectId"]
        self.ask("DOM.setFileInputFiles", files=[str(one) for one in files], objectId=element)

    def save_downloads_to(self, folder: Path) -> None:
        """Where the browser puts what this page lets it download."""
        self.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    # -- the protocol -----------------------------------------------------------------------------------------------

    def console(self) -> list[str]:
        """What scripts have logged since the page was loaded."""
        logged = (one for one in self._events if one["method"] == "Runtime.consoleAPICalled")
        return [" ".join(str(word.get("value")) for word in one["params"]["args"]) for one in logged]

    def ask(self, method: str, **parameters: Any) -> Any:
        """Any command of the DevTools protocol."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (message := self._receive()).get("id") != number:
            self._events.append(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return message["result"]

    def forget_events(self) -> None:
        """Those that have come so far; `wait_for` waits for new ones, and `console` begins anew."""
        self._events.clear()

    def wait_for(self, event: str) -> None:
        """Return when that event has come since the page was last asked to load, or its events were forgotten."""
        while not any(one.get("method") == event for one in self._events):
            self._events.append(self._receive())

    def next_event(self, event: str) -> Any:
        """What that event says, when it comes next; it is not kept."""
        while True:
            place = next((at for at, one in enumerate(self._events) if one.get("method") == event), None)
            if place is not None:
                return self._events.pop(place)["params"]
            self._events.append(self._receive())

    def end(self) -> None:
        """Close the tab, as its user does; the browser goes on. Nothing happens if it is gone already."""
        if not self.has_ended:
            self.has_ended = True
            with contextlib.suppress(ConnectionClosed):
                self.ask("Page.close")

    def crash(self) -> None:
        """End the tab's process, as a lack of memory would; the browser goes on."""
        self.has_ended = True
        self._socket.send(json.dumps({"id": next(self._numbers), "method": "Page.crash"}))

    def get_stuck(self) -> None:
        """Let a script run forever: the page does nothing any more, and its connections stay."""
        self.has_ended = True
        script = {"expression": "for (;;) {}"}
        self._socket.send(json.dumps({"id": next(self._numbers), "method": "Runtime.evaluate", "params": script}))

    def close(self) -> None:
        """Leave it; the browser goes on."""
        self._open.close()

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._socket.recv(REPLY_S))
        return message
