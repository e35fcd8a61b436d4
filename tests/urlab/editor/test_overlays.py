"""What the page writes and draws over the picture, read as the page gets it."""

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import mujoco
import pytest

from urlab.editor.decorations import DRAWN, Decorations, not_drawn
from urlab.editor.panels.inspector import contacts_html, masses_html
from urlab.editor.scripts.appearance import texts_html
from urlab.editor.scripts.keys import twist_pad
from urlab.overlay.visual_flags import OVERLAY_WORDS, VisualFlags
from urlab_client.types import Contact, ContactsResult

MODEL = """<mujoco><worldbody><light name="lamp" pos="0 0 3"/><camera name="eye" pos="0 -2 1"/>
  <geom name="ground" type="plane" size="3 3 .1"/>
  <body name="brick" pos="0 0 .1"><freejoint/><geom name="box" type="box" size=".1 .1 .1"/><site name="mark"/></body>
  <body name="arm" pos="1 0 1"><joint name="hinge" axis="0 1 0"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .5 0 0"/><site name="tip" pos=".5 0 0" euler="180 0 0"/>
    <body name="hand" pos=".5 0 0"><joint axis="0 1 0"/><geom size=".05"/></body></body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator><sensor><rangefinder name="beam" site="tip"/></sensor>
  <tendon><spatial name="rope"><site site="mark"/><site site="tip"/></spatial></tendon></mujoco>"""


@pytest.fixture(scope="module")
def laid_out():
    """How many shapes and which labels the page draws with some overlays on."""
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 20)

    def draw(**overlays: bool | str) -> tuple[int, list[str]]:
        rows: dict[str, list[Any]] = defaultdict(list)
        labels: list[tuple[str, Any]] = []
        shown = {**VisualFlags().in_force(), **overlays}
        world: Any = SimpleNamespace(model=model, data=data, view=SimpleNamespace(overlays=shown, held=()))
        Decorations(None)._add_overlays(world, rows, labels)  # type: ignore[arg-type]
        return sum(map(len, rows.values())), [text for text, _ in labels]

    return draw


@pytest.mark.parametrize(
    "word",
    ["contacts", "contact_forces", "joints", "com", "frames", "inertia", "actuators", "cameras", "lights", "skeleton",
     "rangefinders", "body_boxes"],
)  # fmt: skip
def test_an_overlay_that_is_switched_on_is_drawn(laid_out: Any, word: str):
    assert laid_out(**{word: "body" if word == "frames" else True})[0] > laid_out()[0]


@pytest.mark.parametrize(
    ("kind", "names"),
    [("body", {"brick", "arm", "hand"}), ("geom", {"ground", "box"}), ("site", {"mark", "tip"}), ("joint", {"hinge"}),
     ("tendon", {"rope"}), ("actuator", {"motor"}), ("camera", {"eye"}), ("contact", {"ground | box"})],
)  # fmt: skip
def test_names_are_written_at_every_kind_of_element(laid_out: Any, kind: str, names: set[str]):
    assert names <= set(laid_out(names=kind)[1])


def test_parts_of_the_model_are_not_drawn_a_second_time_for_their_names(laid_out: Any):
    assert laid_out(names="geom")[0] == laid_out()[0]


def test_the_page_says_of_every_overlay_that_it_cannot_draw_that_it_does_not():
    at_first = VisualFlags().in_force()
    assert not_drawn("lit", at_first) == []
    for word in OVERLAY_WORDS:
        switched = {**at_first, word: not at_first[word]}
        assert (not_drawn("lit", switched) == []) == (word in DRAWN)
    assert not_drawn("reflections", {**at_first, "skins": False}) == ["reflections", "skins"]


def test_texts_keep_their_anchor_and_are_no_html():
    shown = texts_html({"top_left": "a < b\n<script>", "bottom": "x"})
    assert '<pre data-anchor="top_left">a &lt; b\n&lt;script&gt;</pre>' in shown
    assert '<pre data-anchor="bottom">x</pre>' in shown


def test_the_inspector_has_the_contacts_of_the_actor_and_their_force():
    def touch(body1: str, body2: str, *force: float) -> Contact:
        return Contact(f"{body1}_g", f"{body2}_g", body1, body2, (0, 0, 0), (0, 0, 1), 0.0, (*force, 0, 0, 0))  # type: ignore[arg-type]

    found = ContactsResult(2, False, [touch("floor", "brick", 3.0, 4.0, 0.0), touch("floor", "cart", 9.0, 0.0, 0.0)])
    shown = contacts_html(found, {"brick"})
    assert "floor_g" in shown
    assert "5 N" in shown
    assert "cart" not in shown
    assert "touches nothing" in contacts_html(found, {"arm"})


def test_masses_are_those_of_each_body_and_their_sum():
    shown = masses_html({"link": 1.5, "hand": 2.5})
    assert [shown.index(word) for word in ("hand", "2.5 kg", "link", "1.5 kg", "all", "4 kg")] == sorted(
        shown.index(word) for word in ("hand", "2.5 kg", "link", "1.5 kg", "all", "4 kg")
    )


def test_the_pad_has_a_named_button_for_every_way_to_drive():
    for key, name in (("w", "forward"), ("s", "backward"), ("q", "turn left"), ("d", "to the right")):
        assert f'data-urlab-key="{key}" aria-label="{name}"' in twist_pad()
