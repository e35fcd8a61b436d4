"""Controllers, control sources and physics options."""

from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.mujoco_versions import VERSION
from urlab_wire.enums import ControlSource
from urlab_wire.ops.runtime import OPTION_FIELDS


def configure(wire: Any, **params: Any) -> Any:
    return wire.ok("configure_controller", articulation="walker", params=params)["params"]


def test_a_controller_is_read_with_an_empty_patch(wire: Any) -> None:
    assert configure(wire) == {
        "kp": {"hip": 40.0, "knee": 25.0},
        "kv": {"hip": 5.0, "knee": 5.0},
        "torque_limit": {"hip": 200.0, "knee": 200.0},
        "default_kp": 40.0, "default_kv": 5.0, "default_torque_limit": 200.0,
    }  # fmt: skip


def test_a_patch_leaves_what_it_does_not_name(wire: Any) -> None:
    params = configure(wire, kp={"hip": 320}, default_kv=6)
    assert (params["kp"], params["kv"]) == ({"hip": 320, "knee": 25}, {"hip": 6, "knee": 6})


def test_an_actuators_name_is_an_alias_of_its_joint(wire: Any) -> None:
    assert configure(wire, kp={"knee_motor": 99})["kp"] == {"hip": 40, "knee": 99}


def test_a_patch_takes_effect_in_the_next_step(wire: Any) -> None:
    configure(wire, default_kp=10, default_kv=0, torque_limit={"knee": 0.5})
    seen = wire.ok("step", per_articulation={"walker": {"ctrl": [0.3, 0.4]}})["per_articulation"]["walker"]
    assert seen["ctrl"] == [pytest.approx(3), 0.5]


@pytest.mark.parametrize(
    "wrong",
    [{"ki": 1}, {"kp": {"elbow": 1}}, {"kp": {"hip": -1}}, {"kp": 5}, {"default_kp": "big"}, {"default_kv": True}],
)
def test_a_patch_that_breaks_the_schema_is_refused_whole(wire: Any, world: Any, wrong: Any) -> None:
    before = world()
    patch = {"kv": {"hip": 77}, **wrong}
    assert wire.refused("configure_controller", articulation="walker", params=patch) == "controller_schema_violation"
    assert world() == before


def test_configuring_needs_a_robot_with_a_controller(wire: Any) -> None:
    assert wire.refused("configure_controller", articulation="arm", params={}) == "no_controller"
    assert wire.refused("configure_controller", articulation="robot", params={}) == "unknown_articulation"
    assert wire.refused("configure_controller", articulation="walker", params=[1]) == "bad_value"


def test_a_user_interface_writes_setpoints_of_its_own(wire: Any) -> None:
    reply = wire.ok("set_ui_controls", target="arm_0", ctrl=[0.5, 0.6])
    assert reply == {"op": "set_ui_controls_ok", "articulation": "arm", "setpoints": [0.5, 0.6], "source": "zmq"}
    wire.ok("set_control_source", source="ui", articulation="arm")
    reply = wire.ok("set_ui_controls", target="arm", ctrl_map={"bend": -1})
    assert (reply["setpoints"], reply["source"]) == ([0.5, -1], "ui")
    assert wire.ok("step")["per_articulation"]["arm"]["ctrl"] == [0.5, -1]


def test_a_user_interfaces_setpoints_go_through_the_controller(wire: Any) -> None:
    configure(wire, default_kp=10, default_kv=0)
    wire.ok("set_ui_controls", target="walker", ctrl=[0.3, 0.4])
    wire.ok("set_control_source", source="ui", articulation="walker")
    assert wire.ok("step")["per_articulation"]["walker"]["ctrl"] == [pytest.approx(3), pytest.approx(4)]


UI_WRONG = [
    ({"target": "arm"}, "missing_field"),
    ({"target": "arm", "ctrl": [], "ctrl_map": {}}, "missing_field"),
    ({"target": "robot", "ctrl": [1, 2]}, "unknown_articulation"),
    ({"target": "arm_0", "target_by": "actor_name", "ctrl": [1, 2]}, "unknown_articulation"),
    ({"target": "arm", "ctrl": [1]}, "dim_mismatch"),
    ({"target": "arm", "ctrl": [1, float("inf")]}, "bad_value"),
    ({"target": "arm", "ctrl_map": {"bend": 1, "twist": 2}}, "bad_value"),
]


@pytest.mark.parametrize(("asked", "code"), UI_WRONG, ids=str)
def test_wrong_setpoints_of_a_user_interface_are_refused_whole(wire: Any, world: Any, asked: Any, code: str) -> None:
    before = world()
    assert wire.refused("set_ui_controls", **asked) == code
    assert world() == before


def test_a_step_whose_controls_do_nothing_says_so_once(wire: Any) -> None:
    wire.ok("set_control_source", source="ui", articulation="arm")
    drive = {"arm": {"ctrl": [1, 2]}, "walker": {"ctrl": [0, 0]}}
    (warning,) = wire.ok("step", per_articulation=drive)["warnings"]
    assert "'arm'" in warning
    assert "set_control_source" in warning
    assert "warnings" not in wire.ok("step", per_articulation=drive)
    wire.hello()
    assert "warnings" not in wire.ok("step", per_articulation={"arm": {"ctrl": []}, "walker": {"ctrl": [0, 0]}})
    assert len(wire.ok("step", per_articulation={"arm": {"ctrl_map": {"lift": 1}}})["warnings"]) == 1


def test_the_source_in_force_can_be_read(wire: Any, server: Any) -> None:
    wire.ok("set_control_source", source="ui", articulation="arm")
    sources = {prefix: server.play.manager.control_source(prefix) for prefix in ("arm", "walker")}
    assert sources == {"arm": ControlSource.UI, "walker": ControlSource.ZMQ}


def test_a_control_source_can_be_chosen_for_all(wire: Any) -> None:
    wire.ok("set_ui_controls", target="arm", ctrl=[0.5, 0.6])
    wire.ok("step", per_articulation={"arm": {"ctrl": [1, 2]}})
    reply = wire.ok("set_control_source", source="UI")
    assert reply == {"op": "set_control_source_ok", "source": "ui", "scope": "global"}
    assert wire.ok("step")["per_articulation"]["arm"]["ctrl"] == [0.5, 0.6]
    wire.ok("set_control_source", source="zmq")
    assert wire.ok("step")["per_articulation"]["arm"]["ctrl"] == [1, 2]


def test_a_control_source_can_be_chosen_for_one(wire: Any) -> None:
    wire.ok("set_ui_controls", target="arm", ctrl=[0.5, 0.6])
    reply = wire.ok("set_control_source", source="ui", articulation="walker")
    assert (reply["scope"], reply["articulation"]) == ("articulation", "walker")
    wire.ok("step", per_articulation={"arm": {"ctrl": [1, 2]}})
    assert wire.ok("step")["per_articulation"]["arm"]["ctrl"] == [1, 2]
    wire.ok("set_control_source", source="ui", articulation="arm")
    assert wire.ok("step", per_articulation={"arm": {"ctrl": [3, 4]}})["per_articulation"]["arm"]["ctrl"] == [0.5, 0.6]


def test_a_control_source_must_exist(wire: Any, world: Any) -> None:
    before = world()
    assert wire.refused("set_control_source") == "missing_field"
    assert wire.refused("set_control_source", source="radio") == "bad_value"
    assert wire.refused("set_control_source", source="ui", articulation="robot") == "unknown_articulation"
    assert world() == before


OPTIONS = {
    "timestep": 0.001, "gravity": [0, 0, -1.62], "wind": [1, 2, 3], "magnetic": [0, -0.5, 0.1], "density": 1.2,
    "viscosity": 1e-5, "impratio": 3.5, "tolerance": 1e-9, "iterations": 55, "ls_iterations": 33, "integrator": "rk4",
    "cone": "elliptic", "solver": "cg", "noslip_iterations": 2, "noslip_tolerance": 1e-7, "ccd_iterations": 22,
    "ccd_tolerance": 1e-7, "enable_multiccd": False, "enable_sleep": True, "sleep_tolerance": 0.002,
    "disableflags": 0, "enableflags": 0, "num_worker_threads": 1 if hasattr(mujoco, "mju_threadpool") else 0,
}  # fmt: skip


def test_every_option_can_be_set_and_is_echoed_exactly(wire: Any) -> None:
    assert set(OPTIONS) == set(OPTION_FIELDS)
    echo = wire.ok("set_sim_options", options={key: OPTIONS[key] for key in OPTIONS if "flags" not in key})["options"]
    assert set(echo) == {*OPTION_FIELDS, "max_worker_threads"}
    assert {key: echo[key] for key in OPTIONS if "flags" not in key} == {
        key: OPTIONS[key] for key in OPTIONS if "flags" not in key
    }
    assert wire.ok("set_sim_options", options={})["options"] == echo


def test_options_act_on_physics(wire: Any, plain: Any, engine: Any, full_state: Any) -> None:
    alone = plain(wire.play("solo")["mjb"])
    wire.ok("set_sim_options", options={"timestep": 1 / 300, "gravity": [0.1, 0, -1.62], "integrator": "RK4"})
    alone.model.opt.timestep, alone.model.opt.integrator = 1 / 300, 1
    alone.model.opt.gravity[:] = [0.1, 0, -1.62]
    wire.ok("step", n_steps=100)
    alone.step(100)
    assert np.array_equal(full_state(engine()), alone.state())


def test_a_new_handshake_carries_the_options_in_force(wire: Any, plain: Any) -> None:
    wire.ok("set_sim_options", options={"timestep": 1 / 300})
    assert plain(wire.hello()["mjb"]).model.opt.timestep == 1 / 300


def test_named_flags_win_over_masks(wire: Any) -> None:
    echo = wire.ok("set_sim_options", options={"enableflags": 0, "enable_sleep": True})["options"]
    assert echo["enable_sleep"] is True
    assert echo["enableflags"] != 0
    echo = wire.ok("set_sim_options", options={"density": 1})["options"]
    assert echo["enable_sleep"] is True, "what is not named stays"


WRONG = [
    ({"timestp": 1}, "bad_value", "timestep"),
    ({"timestep": 0}, "bad_value", "above zero"),
    ({"timestep": float("nan")}, "bad_value", "finite"),
    ({"gravity": [1, 2]}, "dim_mismatch", "3"),
    ({"gravity": [1, 2, "3"]}, "bad_value", "finite"),
    ({"iterations": 1.5}, "bad_value", "whole"),
    ({"iterations": 2**31 - 1, "tolerance": 0}, "bad_value", "10000"),
    *(
        [({"enableflags": 64}, "bad_value", "MuJoCo")] if VERSION >= (4,) else []
    ),  # a flag that needs a model made for it
    ({"integrator": "verlet"}, "bad_value", "rk4"),
    ({"solver": 2}, "bad_value", "newton"),
    ({"cone": ["elliptic"]}, "bad_value", "pyramidal"),
    ({"enable_sleep": 1}, "bad_value", "true or false"),
    ({"disableflags": -1}, "bad_value", "whole"),
    ({"tolerance": 10**400}, "bad_value", "finite"),
    ({"wind": [10**400, 0, 0]}, "bad_value", "finite"),
]


@pytest.mark.parametrize(("wrong", "code", "told"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_options_are_refused_whole(wire: Any, world: Any, wrong: Any, code: str, told: str) -> None:
    before = world()
    wire.json = True
    reply = wire.ask("set_sim_options", options={"density": 9.0, **wrong})
    if reply["code"] == "bad_request":
        wire.json = False
        reply = wire.ask("set_sim_options", options={"density": 9.0, **wrong})
    assert reply["code"] == code
    assert told in reply["message"]
    assert world() == before


def test_options_are_needed(wire: Any) -> None:
    assert wire.refused("set_sim_options") == "missing_field"
    assert wire.refused("set_sim_options", options=[1]) == "bad_value"
