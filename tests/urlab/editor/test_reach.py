"""Who can use the page, and how: by Tab alone, in the dark, on a telephone, with a finger on the pad."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from websockets.sync.client import connect

from urlab.editor.panels import PANELS
from urlab_client import URLabClient

pytestmark = pytest.mark.page

CTRL = 2
TELEPHONE = (390, 844)
SMALL = (600, 420)
MOST_TABS = 30

CONTROLS = """[...document.querySelectorAll("button, input, [role=slider], [role=tab], [role=button]")].filter(one =>
    one.closest("[data-urlab-panel]") && !one.disabled && one.offsetParent && one.type !== "file"
    && one.checkVisibility({visibilityProperty: true}) && one.getAttribute("aria-disabled") !== "true"
    && !one.dataset.direction)"""
"""What a person can use in the panel; the little arrows of a number are those of the keyboard too."""

FOLDERS = """[...document.querySelectorAll("div[style*='cursor: pointer']")].filter(one =>
    one.querySelector(":scope > svg") && one.nextElementSibling && one.offsetParent)"""
CLOSED = f"{FOLDERS}.filter(one => one.nextElementSibling.offsetHeight === 0)"
"""Headings of folders, and of those that show nothing."""

MARK_PANEL = """(() => {
    const status = document.querySelector("#urlab-status"), tabs = document.querySelector("[role=tab]");
    let panel = status;
    while (!panel.contains(tabs)) panel = panel.parentElement;
    panel.dataset.urlabPanel = "";
    window.reached = new Map();
    let byTab = false;
    addEventListener("keydown", (event) => { byTab = event.key === "Tab"; }, true);
    addEventListener("pointerdown", () => { byTab = false; }, true);
    addEventListener("focusin", (event) => {
        if (!byTab) return;
        const style = getComputedStyle(event.target);
        reached.set(event.target, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2);
    });
})()"""
KEPT_SOCKETS = """window.sockets = [];
    window.WebSocket = class extends WebSocket { constructor(...given) { super(...given); sockets.push(this); } };"""
KEYS_SOCKET = "sockets.findLast(one => one.url.includes('/urlab/keys'))"
NAMED = "one => (one.innerText || one.ariaLabel || one.id || one.outerHTML).trim().slice(0, 40)"


@pytest.fixture(autouse=True)
def running(client: URLabClient) -> None:
    """A test begins with a level that plays from its start."""
    client.reset()
    client.runtime.set_paused(False)


def press_tab(page: Any) -> None:
    page.tab.ask("Input.dispatchKeyEvent", type="rawKeyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)


def twist_of_arm(client: URLabClient) -> list[float]:
    client.step(0)
    return [float(one) for one in client.articulations["arm"].twist_linear[:2]]


def is_dark(page: Any) -> bool:
    return bool(page.tab.evaluate("document.documentElement.dataset.mantineColorScheme === 'dark'"))


def test_tab_reaches_every_control_of_every_tab_and_shows_where_it_is(
    client: URLabClient, open_page: Callable[..., Any]
):
    client.outliner.select_actor("arm", by_name=True)
    page = open_page(size=SMALL)
    page.close_notices()
    page.until(lambda: page.tab.evaluate("[...document.querySelectorAll('[role=tab]')].every(one => !one.tabIndex)"))
    page.tab.evaluate(MARK_PANEL)
    missing = f"{CONTROLS}.filter(one => !reached.has(one))"
    for kind in PANELS:
        if kind.title is None:
            continue
        page.open_tab(kind.title)
        page.until(lambda: page.tab.evaluate(f"{FOLDERS}.every(one => one.role === 'button')"))
        page.tab.evaluate(f"{CLOSED}.forEach(one => one.click())")
        page.until(lambda: not page.tab.evaluate(f"{CLOSED}.length"))
        for _ in range(MOST_TABS):
            if not (left := page.tab.evaluate(f"{missing}.length")):
                break
            for _ in range(left):
                press_tab(page)
        assert page.tab.evaluate(f"{missing}.map({NAMED})") == [], kind.title
    assert page.tab.evaluate(f"[...reached].filter(([one, seen]) => !seen).map(([one]) => one).map({NAMED})") == []


def test_a_folder_opens_with_enter_and_closes_with_space(client: URLabClient, open_page: Callable[..., Any]):
    client.outliner.select_actor("arm", by_name=True)
    page = open_page(size=SMALL)
    page.open_tab("Inspect")
    folder = "[...document.querySelectorAll('div[role=button]')].find(one => one.innerText.trim() === 'Drive')"
    page.until(lambda: page.tab.evaluate(f"!!{folder}"))
    page.tab.evaluate(f"{folder}.focus()")
    assert page.tab.evaluate(f"{folder}.parentElement.getBoundingClientRect().height < 80")
    pad = "document.querySelector('[data-urlab-key=w]')"
    page.tab.key("Enter")
    page.until(lambda: page.tab.evaluate(f"!!{pad} && {pad}.getBoundingClientRect().height > 20"))
    page.tab.place(pad)
    page.tab.key(" ")
    page.until(lambda: page.tab.evaluate(f"{folder}.nextElementSibling.offsetHeight === 0"))
    assert not client.sim.status().paused


@pytest.mark.parametrize("size", [SMALL, TELEPHONE])
def test_the_pad_drives_while_it_is_held_and_not_without_its_page(
    client: URLabClient, open_page: Callable[..., Any], size: tuple[int, int]
):
    client.outliner.select_actor("arm", by_name=True)
    page = open_page(size=size)
    page.open_tab("Inspect")
    page.until(lambda: page.says("Drive"))
    page.open_folder("Drive")
    place = page.tab.place("document.querySelector('[data-urlab-key=w]')")
    page.tab.mouse("mousePressed", place)
    page.until(lambda: twist_of_arm(client) == [0.5, 0.0])
    page.tab.mouse("mouseReleased", place, buttons=0)
    page.until(lambda: twist_of_arm(client) == [0.0, 0.0])
    page.tab.mouse("mousePressed", place)
    page.until(lambda: twist_of_arm(client) == [0.5, 0.0])
    page.tab.end()
    page.until(lambda: twist_of_arm(client) == [0.0, 0.0])


def test_a_key_that_cannot_be_sent_is_named_and_counts_when_it_is_still_held_later(
    client: URLabClient, open_page: Callable[..., Any]
):
    client.outliner.select_actor("arm", by_name=True)
    page = open_page(size=SMALL, script=KEPT_SOCKETS)
    page.until(lambda: page.tab.evaluate(f"{KEYS_SOCKET}.readyState === 1"))
    page.tab.evaluate(f"{KEYS_SOCKET}.close()")
    page.tab.key("w", up=False)
    page.until(lambda: page.says("the key W has no effect"))
    page.until(lambda: twist_of_arm(client) == [0.5, 0.0])
    page.tab.ask("Input.dispatchKeyEvent", type="keyUp", key="w", modifiers=CTRL)
    page.until(lambda: twist_of_arm(client) == [0.0, 0.0])


def test_a_page_that_falls_silent_drives_no_longer_and_one_that_only_looks_on_stops_nobody(
    client: URLabClient, open_page: Callable[..., Any]
):
    client.outliner.select_actor("arm", by_name=True)
    page = open_page(size=SMALL)
    key = page.tab.evaluate("document.querySelector('#urlab-status').dataset.urlabPage")
    second = open_page(size=SMALL)
    onlooker = second.tab.evaluate("document.querySelector('#urlab-status').dataset.urlabPage")
    address = client.viewport.editor_url().replace("http", "ws", 1).replace("/?", "/urlab/keys?")
    client.runtime.set_twist("arm", linear=(0.25, 0.0, 0.0))
    with connect(address) as socket:
        for page_key, keys in ((onlooker, ["s"]), (onlooker, []), ("none", ["a"])):
            socket.send(json.dumps({"page": page_key, "held": keys}))
        assert json.loads(socket.recv(20)) == {"lost": "a"}, "and so the others were heard before"
        assert twist_of_arm(client) == [0.25, 0.0]
        for _ in range(2):
            socket.send(json.dumps({"page": key, "held": ["w"]}))
            page.until(lambda: twist_of_arm(client) == [0.5, 0.0])
            page.until(lambda: twist_of_arm(client) == [0.0, 0.0])
        socket.send(json.dumps({"page": key, "held": ["w"]}))
        page.until(lambda: twist_of_arm(client) == [0.5, 0.0])
    page.until(lambda: twist_of_arm(client) == [0.0, 0.0])


def test_the_page_shows_texts_and_what_the_selected_actor_touches(client: URLabClient, open_page: Callable[..., Any]):
    client.outliner.select_actor("brick", by_name=True)
    page = open_page(size=SMALL)
    over = "document.querySelector('#urlab-over > [data-anchor=top_left]')?.innerText"

    def shown() -> bool:
        client.debug.set_overlay_text("two\nlines")
        return bool(page.tab.evaluate(f"{over} === 'two\\nlines'"))

    page.until(shown)
    client.debug.set_overlay_text("")
    page.until(lambda: page.tab.evaluate(f"{over} === undefined"))
    page.open_tab("Inspect")
    page.until(lambda: page.says(" N"))
    assert page.says("brick")


def test_the_page_is_dark_where_the_system_is_until_its_user_says_otherwise(open_page: Callable[..., Any]):
    page = open_page(size=SMALL, dark=True)
    page.until(lambda: is_dark(page))
    page.open_tab("View")
    page.until(lambda: page.says("Camera as in"))
    page.tick("Dark")
    page.until(lambda: not is_dark(page))
    page.until(lambda: page.tab.evaluate("localStorage.getItem('urlab-dark') === 'light'"))
