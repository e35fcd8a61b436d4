"""Pages that are reloaded, stuck or cut off while a body, a key or a slider is held: nothing stays as they held it."""

import select
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from urlab_client import URLabClient

pytestmark = pytest.mark.page

CTRL = 2


class Line:
    """A port that leads to the editor until it is cut: then nothing gets through any more, and nobody is told."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._is_cut, self._is_closed = threading.Event(), threading.Event()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        self._is_cut.set()

    def close(self) -> None:
        self._is_closed.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        for end in self._ends:
            end.close()

    def _accept(self) -> None:
        while not self._is_closed.is_set():
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._ends.append(near)
            far = socket.create_connection(("127.0.0.1", self._to))
            self._ends.append(far)
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        other = {near: far, far: near}
        try:
            while not self._is_closed.is_set():
                for one in select.select([near, far], [], [], 1.0)[0]:
                    data = one.recv(1 << 16)
                    if self._is_cut.is_set():
                        return
                    if not data:
                        near.close()
                        far.close()
                        return
                    other[one].sendall(data)
        except OSError:
            return


@pytest.fixture
def line(client: URLabClient) -> Iterator[Line]:
    """To the editor of the server."""
    opened = Line(urlsplit(client.viewport.editor_url()).port or 0)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def running(client: URLabClient) -> None:
    """A test begins with a level that plays from its start."""
    client.reset()
    client.outliner.select_actor("arm", by_name=True)


def is_red(red: Any, green: Any, blue: Any) -> Any:
    return (red > 120) & (green < 110) & (blue < 110)


def start_drag(client: URLabClient, page: Any) -> None:
    """Drag the brick, and hold it there."""
    page.close_notices()
    x, y = page.until(lambda: page.middle_of(is_red))
    page.tab.mouse("mouseMoved", (x, y), buttons=0, modifiers=CTRL)
    page.tab.mouse("mousePressed", (x, y), modifiers=CTRL)
    for way in (40, 90):
        page.tab.mouse("mouseMoved", (x, y - way), modifiers=CTRL)
    page.until(lambda: client.viewport.read("known").held)


def hold_key(client: URLabClient, page: Any) -> None:
    page.tab.key("w", up=False)
    page.until(lambda: drives(client))


def move_slider(client: URLabClient, page: Any) -> None:
    page.open_tab("Inspect")
    page.tick("Drive from this page")
    page.until(lambda: follows_page(client))
    page.slide("servo", 0.9)


def drives(client: URLabClient) -> bool:
    client.step(0)
    return bool(client.articulations["arm"].twist_linear[0] != 0)


def follows_page(client: URLabClient) -> bool:
    return (client.sim.status().control_source or {}).get("arm") == "ui"


def is_held(client: URLabClient) -> bool:
    """Whether anything is as only a page holds it."""
    return bool(client.viewport.read("known").held) or drives(client) or follows_page(client)


@pytest.mark.parametrize("hold", [start_drag, hold_key, move_slider])
def test_a_page_that_is_reloaded_holds_nothing_and_works_again(
    client: URLabClient, page: Any, hold: Callable[[URLabClient, Any], None]
):
    hold(client, page)
    page.tab.ask("Page.reload")
    page.until(lambda: not is_held(client))
    page.until(lambda: page.state == "playing")
    page.press("Pause")
    page.until(lambda: client.sim.status().paused)
    page.press("Pause")
    page.until(lambda: not client.sim.status().paused)


@pytest.mark.parametrize("hold", [start_drag, hold_key, move_slider])
def test_a_page_that_is_cut_off_holds_nothing(
    client: URLabClient, open_page: Callable[..., Any], line: Line, hold: Callable[[URLabClient, Any], None]
):
    address = urlsplit(client.viewport.editor_url())
    page = open_page(url=address._replace(netloc=f"127.0.0.1:{line.port}").geturl())
    hold(client, page)
    line.cut()
    page.until(lambda: not is_held(client))


def test_a_body_that_is_held_still_is_kept_until_its_page_is_stuck(client: URLabClient, page: Any):
    start_drag(client, page)
    began = client.sim.status().sim_time or 0.0
    page.until(lambda: (client.sim.status().sim_time or 0.0) > began + 3.0)
    assert client.viewport.read("known").held, "its pointer is down, though it does not move"
    page.tab.get_stuck()
    page.until(lambda: not is_held(client))
