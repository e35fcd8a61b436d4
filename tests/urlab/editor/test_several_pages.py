"""Several pages on one server, and who gets in: in a real browser."""

import contextlib
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
import viser
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from urlab_client import URLabClient

pytestmark = pytest.mark.page

TABS = 10
CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": (1.0, 0.0, 0.0, 0.0), "position": (-3.0, 0.0, 2.0), "fov": 1.0, "near": 0.01,
    "far": 1000.0, "image_height": 600, "image_width": 900, "look_at": (0.0, 0.0, 0.0), "up_direction": (0.0, 0.0, 1.0),
}  # fmt: skip
"""What a tab says first: from then on the server counts it as one."""


def test_a_second_page_looks_on_until_it_is_given_the_controls(client: URLabClient, open_page: Callable[..., Any]):
    client.outliner.select_actor("arm", by_name=True)
    page = open_page(size=(600, 420))
    page.open_tab("Inspect")
    page.until(lambda: page.says("Drive from this page"))
    client.outliner.select_actor("brick", by_name=True)
    page.until(lambda: not page.says("Drive from this page"))
    second = open_page(size=(600, 420))
    second.until(lambda: second.says("holds the controls"))
    second.press("Pause")
    second.until(lambda: second.says("Another page holds the controls"))
    assert client.sim.status().paused is False
    second.press("Ask for the controls")
    page.press("Give the controls away")
    page.until(lambda: page.says("holds the controls"))
    second.press("Pause")
    second.until(lambda: client.sim.status().paused)
    second.press("Pause")
    second.until(lambda: not client.sim.status().paused)


def test_a_robot_follows_sliders_until_the_last_page_that_moved_them_is_closed(
    client: URLabClient, open_page: Callable[..., Any]
):
    def follows_sliders() -> bool:
        return (client.sim.status().control_source or {}).get("arm") == "ui"

    client.outliner.select_actor("arm", by_name=True)
    first = open_page()
    first.open_tab("Inspect")
    first.tick("Drive from this page")
    first.until(follows_sliders)
    second = open_page()
    second.press("Ask for the controls")
    first.press("Give the controls away")
    second.open_tab("Inspect")
    second.slide("servo", 0.8)
    second.until(lambda: client.step(0) and client.articulations["arm"].get_qpos()["hinge"] > 0.6)
    first.press("Ask for the controls")
    second.until(lambda: second.says("asks for the controls"))
    first.tab.end()
    second.until(lambda: not second.says("asks for the controls"))
    assert follows_sliders()
    second.tab.end()
    second.until(lambda: not follows_sliders())


def test_ten_tabs_do_not_disturb_the_client_that_steps(client: URLabClient, page: Any):
    client.runtime.set_mode("direct")
    try:
        page.until(lambda: page.says("direct"))
        before = int(client.step(1)["step"])
        with contextlib.ExitStack() as tabs:
            address = client.viewport.editor_url().replace("http", "ws")
            for _ in range(TABS):
                tab = tabs.enter_context(
                    connect(address, subprotocols=[Subprotocol(f"viser-v{viser.__version__}")], max_size=None)
                )
                tab.send(msgspec.msgpack.encode(CAMERA))
                assert tab.recv(20.0)
            steps = [int(client.step(1)["step"]) for _ in range(300)]
        assert steps == list(range(before + 1, before + 301))
        page.until(lambda: page.tab.evaluate("document.querySelector('#urlab-status').innerText.includes('direct')"))
    finally:
        client.runtime.set_mode("live")


@pytest.mark.parametrize("token", ["right", "wrong"])
def test_a_page_without_its_token_is_locked_and_the_form_opens_it(client: URLabClient, browser: Any, token: str):
    address = urlsplit(client.viewport.editor_url())
    given = address.query.removeprefix("token=") if token == "right" else "open sesame"
    tab = browser.open("about:blank")
    tab.ask("Network.clearBrowserCookies")
    tab.go_to(f"{address.scheme}://{address.netloc}/")
    assert "needs a token" in tab.evaluate("document.body.innerText")
    assert not tab.evaluate("document.scripts.length")
    tab.click("document.querySelector('input')")
    tab.type(given)
    tab.forget_events()
    tab.click("document.querySelector('button')")
    tab.wait_for("Page.loadEventFired")
    if token == "right":
        assert "token" not in tab.evaluate("location.href")
        assert tab.evaluate("document.title") == "URLab"
        assert tab.evaluate("!!document.querySelector('#root')")
    else:
        assert "not the right one" in tab.evaluate("document.body.innerText")
    tab.end()
