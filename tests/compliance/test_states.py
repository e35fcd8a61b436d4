"""States that are saved and restored, and constraints that are switched."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urlab.manager import states

LINKED = """
<mujoco model="linked"><option gravity="0 0 0"/><worldbody>
  <body name="a"><joint name="a" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>
  <body name="b" pos="0 1 0"><joint name="b" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>
  </worldbody><equality><joint name="tie" joint1="a" joint2="b"/>
    <joint name="loose" joint1="a" joint2="b" active="false"/></equality>
  <actuator><motor name="push" joint="a"/></actuator></mujoco>"""


def excite(wire: Any, level: str, n_steps: int) -> Any:
    for index in range(n_steps // 20):
        ctrl = (0.3 * np.sin(np.arange(4) + index)).tolist()
        command = {"muscles": {"ctrl": ctrl}} if level == "muscles" else {"arm": {"ctrl": ctrl[:2]}}
        seen = wire.ok("step", n_steps=20, per_articulation=command)
    return seen


@pytest.mark.parametrize("level", ["muscles", "arena"])
@pytest.mark.parametrize("by", ["name", "state"])
def test_a_restored_state_goes_on_bit_for_bit(wire: Any, engine: Any, full_state: Any, level: str, by: str) -> None:
    wire.play(level)
    excite(wire, level, 100)
    saved = wire.ok("save_state", name="here")
    futures = []
    for _ in range(2):
        excite(wire, level, 200)
        futures.append(full_state(engine()))
        wire.ok("restore_state", **({"name": "here"} if by == "name" else {"state": saved["state"]}))
    assert np.array_equal(*futures)


BOXES = "".join(
    f'<body name="b{i}" pos="{0.05 * (i % 3)} {0.22 * i} .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    for i in range(4)
)
SLEEPERS = f"""
<mujoco model="sleepers"><option timestep=".002"><flag sleep="enable"/></option><worldbody>
  <geom type="plane" size="5 5 .1"/>{BOXES}
  <body name="ball" pos="0.02 0.3 3"><freejoint/><geom size=".1"/></body>
  <body name="arm" pos="3 0 1"><joint name="swing" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".05"/>
  </body></worldbody><actuator><motor name="push" joint="swing"/></actuator></mujoco>"""
"""A ball drops onto boxes that lie still, and wakes them; an arm nearby swings on."""

DELAYED = """
<mujoco model="late"><option timestep=".002"/><worldbody><body name="arm"><joint name="j" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 .5 0 0" size=".05"/></body></worldbody>
  <actuator><motor name="push" joint="j" delay=".01" nsample="8"/></actuator>
  <sensor><jointpos name="seen" joint="j" delay=".02" interval=".01" nsample="8"/></sensor></mujoco>"""


@pytest.mark.parametrize("before", [400, 1500])
@pytest.mark.parametrize("model", ["sleepers", "late"])
def test_sleep_and_delays_are_part_of_a_state(
    make_server: Callable[..., Any], connect: Any, tmp_path: Path, before: int, model: str
) -> None:
    (tmp_path / f"{model}.xml").write_text(SLEEPERS if model == "sleepers" else DELAYED)
    server = make_server(str(tmp_path / f"{model}.xml"))
    wire = connect(server)
    wire.hello()
    wire.ok("set_mode", mode="direct")

    def future() -> list[Any]:
        data, seen = server.play.manager.engine.data, []
        for index in range(40):
            wire.ok("step", n_steps=20, per_articulation={model: {"ctrl": [0.1 * (index % 3)]}})
            seen.append([*data.qpos, *data.qvel, *data.sensordata, *data.tree_asleep])
        return seen

    wire.ok("step", n_steps=before)
    asleep = np.count_nonzero(server.play.manager.engine.data.tree_asleep >= 0)
    assert (asleep > 0) == (model == "sleepers"), "some bodies sleep, or nothing is tested"
    state = wire.ok("save_state")["state"]
    first = future()
    wire.ok("restore_state", state=state)
    assert future() == first
    wire.ok("stop_pie")
    wire.ok("begin_pie")
    wire.ok("set_mode", mode="direct")
    wire.ok("restore_state", state=state)
    assert future() == first, "in another play"


def test_rings_of_sleepers_that_cannot_be_are_refused(
    make_server: Callable[..., Any], connect: Any, tmp_path: Path
) -> None:
    (tmp_path / "sleepers.xml").write_text(SLEEPERS)
    server = make_server(str(tmp_path / "sleepers.xml"))
    wire = connect(server)
    wire.hello()
    wire.ok("set_mode", mode="direct")
    wire.ok("step", n_steps=400)
    state, asleep = wire.ok("save_state")["state"], server.play.manager.engine.data.tree_asleep.copy()
    good = asleep.tobytes()
    assert state.count(good) == 1
    for wrong in ([0, 0, 0, 0, -1, -1], [99, *asleep[1:]], [3, *asleep[1:]], [-(2**31), *asleep[1:]]):
        bad = state.replace(good, np.array(wrong, np.int32).tobytes())
        reply = wire.ask("restore_state", state=bad)
        assert (reply["code"], "damaged" in reply["message"]) == ("bad_value", True)
    wire.ok("restore_state", state=state)


def test_a_restored_state_is_the_saved_one(wire: Any, engine: Any, full_state: Any) -> None:
    wire.ok("set_mocap_pose", body="goal", pos=[1, 2, 3])
    before = excite(wire, "arena", 60)
    state, saved = full_state(engine()), wire.ok("save_state")
    excite(wire, "arena", 60)
    wire.ok("set_mocap_pose", body="goal", pos=[0, 0, 1])
    seen = wire.ok("restore_state", state=saved["state"])
    assert np.array_equal(full_state(engine()), state)
    assert (seen["time"], saved["time"]) == (before["time"], before["time"])
    assert seen["entities"]["crate"]["qpos"] == before["entities"]["crate"]["qpos"]
    assert engine().data.mocap_pos.tolist() == [[1, 2, 3]]


def test_what_follows_from_a_restored_state_is_evaluated(wire: Any, plain: Any) -> None:
    alone = plain(wire.play("arena")["mjb"])
    excite(wire, "arena", 60)
    state = wire.ok("save_state")["state"]
    wire.ok("reset")
    seen = wire.ok("restore_state", state=state)
    alone.data.qpos[:] = [*seen["per_articulation"]["arm"]["qpos"], *seen["per_articulation"]["walker"]["qpos"],
                          *seen["entities"]["crate"]["qpos"]]  # fmt: skip
    alone.forward()
    tip = alone.data.sensor("arm_tip").data
    assert np.allclose(seen["per_articulation"]["arm"]["sensors"]["tip"], tip, rtol=0, atol=1e-12)


def test_staged_setpoints_of_both_sources_come_back(wire: Any) -> None:
    wire.ok("step", per_articulation={"arm": {"ctrl": [0.5, -0.5]}})
    wire.ok("set_ui_controls", target="arm", ctrl=[0.1, 0.2])
    state = wire.ok("save_state")["state"]
    wire.ok("step", per_articulation={"arm": {"ctrl": [0, 0]}})
    wire.ok("set_ui_controls", target="arm", ctrl=[0, 0])
    assert wire.ok("restore_state", state=state)["setpoints"]["arm"] == [0.5, -0.5]
    assert wire.ok("step")["per_articulation"]["arm"]["ctrl"] == [0.5, -0.5]
    wire.ok("set_control_source", source="ui")
    assert wire.ok("step")["per_articulation"]["arm"]["ctrl"] == [0.1, 0.2]


def test_the_step_counter_goes_on_and_the_time_goes_back(wire: Any) -> None:
    wire.ok("step", n_steps=5)
    state = wire.ok("save_state")["state"]
    wire.ok("step", n_steps=5)
    seen = wire.ok("restore_state", state=state)
    assert (seen["step"], seen["time"]) == (10, pytest.approx(0.01))


def test_states_are_listed_and_forgotten(wire: Any) -> None:
    assert wire.ok("list_states")["states"] == []
    first = wire.ok("save_state", name="first")
    wire.ok("step", n_steps=5)
    wire.ok("save_state", name="second")
    wire.ok("save_state")
    size = len(first["state"])
    assert wire.ok("list_states")["states"] == [
        {"name": "first", "time": 0.0, "size": size},
        {"name": "second", "time": pytest.approx(0.01), "size": size},
    ]
    assert [wire.ok("delete_state", name="first")["was_found"] for _ in range(2)] == [True, False]
    assert [one["name"] for one in wire.ok("list_states")["states"]] == ["second"]


def test_a_name_that_is_used_again_keeps_the_newer_state(wire: Any) -> None:
    wire.ok("save_state", name="here")
    wire.ok("step", n_steps=5)
    wire.ok("save_state", name="here")
    wire.ok("reset")
    assert wire.ok("restore_state", name="here")["time"] == pytest.approx(0.01)
    assert len(wire.ok("list_states")["states"]) == 1


def test_a_play_keeps_its_own_states(wire: Any) -> None:
    wire.ok("save_state", name="here")
    wire.play("arena")
    assert wire.ok("list_states")["states"] == []


def test_a_state_fits_a_later_play_of_the_same_level(wire: Any, engine: Any, full_state: Any) -> None:
    excite(wire, "arena", 40)
    state, bits = wire.ok("save_state")["state"], full_state(engine())
    wire.play("arena")
    wire.ok("restore_state", state=state)
    assert np.array_equal(full_state(engine()), bits)


def test_the_state_of_another_model_is_refused(wire: Any, world: Any) -> None:
    wire.play("muscles")
    state = wire.ok("save_state")["state"]
    wire.play("arena")
    before = world()
    reply = wire.ask("restore_state", state=state)
    assert (reply["code"], "another model" in reply["message"]) == ("bad_value", True)
    assert world() == before


def test_a_damaged_state_is_refused(wire: Any, world: Any) -> None:
    good, before = wire.ok("save_state")["state"], world()
    not_a_number = good[:40] + np.array(np.nan).tobytes() + good[48:]
    for wrong in (b"", b"nothing", good[:-1], good[:100], good + b"x", not_a_number):
        assert wire.refused("restore_state", state=wrong) == "bad_value"
    assert world() == before


def test_a_state_that_is_not_kept_is_told_which_are(wire: Any) -> None:
    wire.ok("save_state", name="home")
    reply = wire.ask("restore_state", name="away")
    assert (reply["code"], "home" in reply["message"]) == ("bad_value", True)
    assert wire.refused("restore_state") == "missing_field"
    assert wire.refused("restore_state", name="home", state=b"x") == "bad_value"


@pytest.mark.parametrize("limit", ["MAX_STATES", "MAX_STATE_BYTES"])
def test_no_more_states_are_kept_than_fit(wire: Any, monkeypatch: Any, limit: str) -> None:
    size = len(wire.ok("save_state", name="first")["state"])
    monkeypatch.setattr(states, limit, {"MAX_STATES": 2, "MAX_STATE_BYTES": 2 * size + 1}[limit])
    wire.ok("save_state", name="second")
    reply = wire.ask("save_state", name="third")
    assert (reply["code"], "delete_state" in reply["message"]) == ("bad_value", True)
    wire.ok("save_state", name="second")
    wire.ok("delete_state", name="first")
    wire.ok("save_state", name="third")
    assert [one["name"] for one in wire.ok("list_states")["states"]] == ["second", "third"]


def test_a_state_travels_in_json(wire: Any) -> None:
    wire.json = True
    wire.hello(encoding="json")
    wire.ok("step", n_steps=5)
    state = wire.ok("save_state")["state_base64"]
    wire.ok("reset")
    assert wire.ok("restore_state", state=state)["time"] == pytest.approx(0.01)
    assert wire.refused("restore_state", state="?") == "bad_value"


def test_restoring_ends_a_replay(wire: Any) -> None:
    state = wire.ok("save_state")["state"]
    wire.ok("recording_start")
    wire.ok("step", n_steps=5)
    wire.ok("recording_stop")
    wire.ok("replay_start")
    assert "replay" not in wire.ok("restore_state", state=state)


@pytest.mark.parametrize("how", ["reset", "restore", "replay", "time"])
def test_a_jump_makes_every_earlier_frame_too_old(wire: Any, engine: Any, how: str) -> None:
    state = wire.ok("save_state")["state"]
    wire.ok("recording_start")
    wire.ok("step", n_steps=5)
    wire.ok("recording_stop")
    newest = engine().snapshot.frame_id
    assert engine().first_frame_id <= newest
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "reset": ("reset", {}),
        "restore": ("restore_state", {"state": state}),
        "replay": ("replay_start", {}),
        "time": ("reset", {"scope": "time"}),
    }
    op, fields = asked[how]
    wire.ok(op, **fields)
    assert newest < engine().first_frame_id <= engine().snapshot.frame_id


def test_no_frame_from_before_a_restored_state_is_shown(wire: Any) -> None:
    wire.ok("step", n_steps=5)
    state = wire.ok("save_state")["state"]
    wire.ok("step", n_steps=95, include_cameras={"eye": "sync"})
    restored = wire.ok("restore_state", state=state)
    seen = wire.ok("step", n_steps=0, include_cameras={"eye": "latest"})
    assert seen["cameras"]["eye"]["sim_time"] == seen["time"] == restored["time"] == pytest.approx(0.01)


# -- equality constraints -----------------------------------------------------------------------------------------


@pytest.fixture
def linked(make_server: Callable[..., Any], connect: Any, tmp_path: Path) -> Any:
    """Two sliders that are tied together, in direct mode."""
    (tmp_path / "linked.xml").write_text(LINKED)
    linked = connect(make_server(str(tmp_path / "linked.xml")))
    linked.hello()
    linked.ok("set_mode", mode="direct")
    return linked


def push(wire: Any) -> Any:
    """Where both sliders are after half a second."""
    seen = wire.ok("step", n_steps=250, per_articulation={"linked": {"ctrl": [1]}})
    return seen["per_articulation"]["linked"]["qpos"]


@pytest.mark.parametrize("name", ["tie", "linked_tie"])
def test_a_constraint_is_switched_off_and_on(linked: Any, name: str) -> None:
    a, b = push(linked)
    assert b == pytest.approx(a, abs=1e-3)
    linked.ok("reset")
    assert linked.ok("set_equality", name=name, active=False) == {
        "op": "set_equality_ok", "name": "linked_tie", "active": False,
    }  # fmt: skip
    a, b = push(linked)
    assert (a > 0.1, b) == (True, 0)
    linked.ok("set_equality", name=name, active=True)
    assert push(linked)[1] > 0.1


def test_a_reset_brings_the_models_own_constraints_back(linked: Any) -> None:
    linked.ok("set_equality", name="tie", active=False)
    linked.ok("reset")
    a, b = push(linked)
    assert b == pytest.approx(a, abs=1e-3)


def test_a_state_has_the_constraints_that_are_on(linked: Any) -> None:
    linked.ok("set_equality", name="tie", active=False)
    state = linked.ok("save_state")["state"]
    linked.ok("reset")
    assert linked.ok("restore_state", state=state)["equalities"] == {"linked_tie": False}
    assert push(linked)[1] == 0


def test_an_unknown_constraint_is_told_which_exist(linked: Any) -> None:
    reply = linked.ask("set_equality", name="rope", active=False)
    assert (reply["code"], "linked_tie" in reply["message"]) == ("bad_value", True)
    assert linked.refused("set_equality", name="tie", active=1) == "bad_value"
