"""Wrong names, misspelt attributes, read-only attributes, and what objects say of themselves."""

import base64
import importlib
import inspect
import io
import pickle
import pkgutil
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import urlab
import urlab_client
from urlab.app import Server
from urlab.config import ServerConfig
from urlab_client import (
    ActorInfo,
    CameraFrame,
    CameraMode,
    ContactsResult,
    InProcessTransport,
    KeyframeInfo,
    PIEStartResult,
    PIEState,
    SimOptions,
    StepMode,
    URLabArticulation,
    URLabClient,
    URLabControllerError,
    URLabLookupError,
    URLabRPCError,
    URLabTimeoutError,
    URLabVersionMismatch,
)
from urlab_client.errors import PicklableError, ServerEndedError, counted


def modules() -> list[Any]:
    found = pkgutil.walk_packages(urlab_client.__path__, "urlab_client.")
    return [urlab_client, *(importlib.import_module(one.name) for one in found)]


# -- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.articulations["arn"], "no articulation 'arn' (did you mean 'arm'?); there are arm, dog"),
        (lambda c: c.articulations_by_id["robot_1"], "(did you mean 'robot_0'?); there are robot_0"),
        (lambda c: c.entities["boxx"], "no entity 'boxx' (did you mean 'box'?)"),
        (lambda c: c.global_cameras["rom"], "no camera 'rom' (did you mean 'room'?); there are room"),
        (lambda c: c.articulations["arm"].joints["wast"], "'arm' has no joint 'wast' (did you mean 'waist'?)"),
        (lambda c: c.articulations["arm"].actuators["x"], "'arm' has no actuator 'x'; it has waist, elbow"),
        (lambda c: c.articulations["arm"].sensors["tipp"], "'arm' has no sensor 'tipp' (did you mean 'tip'?)"),
        (lambda c: c.articulations["arm"].bodies["x"], "'arm' has no body 'x'; it has base, hand"),
        (lambda c: c.articulations["arm"].cameras["x"], "'arm' has no camera 'x'; it has wrist, eye"),
        (lambda c: c.articulations["arm"].controller.kp["x"], "has no kp of joint 'x'; it has waist, elbow_joint"),
        (lambda c: c.articulations["arm"].set_ctrl({"x": 1}), "'arm' has no actuator 'x'; it has waist, elbow"),
        (lambda c: c.articulations["arm"].apply_xfrc("x"), "'arm' has no body 'x'; it has base, hand"),
        (lambda c: c.articulations["arm"].get_qpos()["x"], "'arm' has no joint 'x'; it has waist, elbow_joint"),
        (lambda c: c.articulations["arm"].get_ctrl()["x"], "'arm' has no actuator 'x'; it has waist, elbow"),
        (lambda c: c.articulations["arm"].get_sensors()["x"], "'arm' has no sensor 'x'; it has waist_pos, tip"),
        (lambda c: c.articulations["arm"].mj("geom", "x"), "'arm' has no geom 'x'; it has g0"),
        (lambda c: c.articulations["arm"].mj("gom", "x"), "no kind of element 'gom' (did you mean 'geom'?)"),
    ],
)  # fmt: skip
def test_a_wrong_name_is_answered_with_those_there_are(client: URLabClient, wrong: Any, message: str) -> None:
    with pytest.raises(URLabLookupError, match=re.escape(message)) as raised:
        wrong(client)
    assert isinstance(raised.value, KeyError)
    assert raised.value.known


def test_an_actuator_without_a_name_answers_to_its_joint(tmp_path: Path) -> None:
    xml = """<mujoco model="ant"><worldbody><body><joint name="hip_1" axis="0 1 0"/><geom size=".1"/>
      <body><joint name="hip_2" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body></body></worldbody>
      <actuator><motor joint="hip_1"/><motor joint="hip_2"/><motor joint="hip_2"/></actuator></mujoco>"""
    model = tmp_path / "ant.xml"
    model.write_text(xml)
    with urlab.launch(model, project=tmp_path / "project") as client:
        ant = client.articulations["ant"]
        ant.set_ctrl({"hip_1": 1.5})
        assert ant.ctrl_array.tolist() == [1.5, 0.0, 0.0]
        assert ant.actuators["hip_1"] is ant.actuators["actuator_0"]
        assert ant.resolve_actuator("hip_1") == "actuator_0"
        assert "hip_1" not in ant.actuators
        with pytest.raises(URLabLookupError, match="'ant' has no actuator 'hip_2'; it has actuator_0"):
            ant.set_ctrl({"hip_2": 1.0})
        client.step()
        assert ant.last_applied_ctrl.tolist() == [1.5, 0.0, 0.0]


def test_before_discover_everything_says_what_to_do(make_client: Any, server: Any) -> None:
    client = make_client()
    for ask in (
        client.scene.current_level, client.sim.status, client.runtime.list_keyframes, client.recording.start,
        client.replay.list_sessions, client.outliner.list_actors, client.debug.clear_markers, client.viewport.untrack,
        client.step, client.reset,
    ):  # fmt: skip
        with pytest.raises(URLabRPCError, match=r"call discover\(\) first"):
            ask()
    for table in (client.articulations, client.entities, client.global_cameras, client.articulations_by_id):
        with pytest.raises(KeyError, match=r"there are none yet: call discover\(\) first"):
            table["arm"]
    assert server.ops() == []


# -- attributes ----------------------------------------------------------------------------------------------------

READ_ONLY = """
session_id urlab_version mujoco_version manager_present model data articulations articulations_by_id entities
global_cameras recording replay step_count sim_time sim_time_sec sim_time_nsec wall_time_sec wall_time_nsec
recv_wall_time_ns step_mode address scene sim runtime outliner debug viewport observer local_model latest_state"""


@pytest.mark.parametrize("name", READ_ONLY.split())
def test_an_attribute_of_the_client_is_read_only(client: URLabClient, name: str) -> None:
    with pytest.raises(AttributeError, match=f"{name} is read-only"):
        setattr(client, name, None)


def test_the_step_mode_is_set_by_an_op(client: URLabClient) -> None:
    with pytest.raises(AttributeError, match=r"step_mode is read-only: call client\.runtime\.set_mode"):
        client.step_mode = StepMode.LIVE  # type: ignore[misc]


def test_a_misspelt_attribute_is_an_error_that_proposes_one(client: URLabClient) -> None:
    arm = client.articulations["arm"]
    for owner, wrong, right in (
        (client, "step_mod", "step_mode"), (arm, "ctrl_arry", "ctrl_array"), (arm, "control_mod", "control_mode"),
        (client.entities["box"], "actor_i", "actor_id"), (arm.cameras["eye"], "latest_fram", "latest_frame"),
        (arm.controller, "parms", "params"), (client.runtime, "set_mod", "set_mode"),
        (arm.actuators["waist"], "vlue", "value"), (arm.joints["waist"], "rang", "range"),
    ):  # fmt: skip
        with pytest.raises(AttributeError, match=f"no attribute {wrong!r} to set: did you mean {right!r}"):
            setattr(owner, wrong, 1)
    with pytest.raises(AttributeError, match="did you mean 'create_level'"):
        client.scene.create_levl  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(TypeError, match="step_mod"):
        URLabClient(step_mod="direct")  # type: ignore[call-arg]


def test_what_the_model_says_of_a_part_is_read_only(client: URLabClient) -> None:
    arm = client.articulations["arm"]
    for part, name in (
        (arm.actuators["waist"], "type"), (arm.actuators["waist"], "value"), (arm.sensors["tip"], "dim"),
        (arm.bodies["hand"], "id"), (arm.joints["waist"], "range"),
    ):  # fmt: skip
        with pytest.raises(AttributeError, match=f"{name} is read-only"):
            setattr(part, name, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.update(x=1), lambda table: table.clear(), lambda table: table.pop(next(iter(table))),
        lambda table: table.__setitem__("x", 1), lambda table: table.__delitem__(next(iter(table))),
        lambda table: table.setdefault("x", 1), lambda table: table.popitem(), lambda table: table.__ior__({"x": 1}),
    ],
)  # fmt: skip
def test_tables_of_what_the_scene_has_are_read_only(client: URLabClient, change: Any) -> None:
    arm = client.articulations["arm"]
    own = (arm.joints, arm.actuators, arm.sensors, arm.bodies, arm.cameras)
    for table in (client.articulations, client.articulations_by_id, client.entities, client.global_cameras, *own):
        before = dict(table)
        with pytest.raises(TypeError, match="read-only"):
            change(table)
        assert dict(table) == before
    values = arm.get_ctrl()
    values["waist"] = 0.5
    arm.set_ctrl(values)
    assert arm.ctrl_array[0] == 0.5


def arrays_of(thing: Any) -> dict[str, Any]:
    """Attributes of a handle that are arrays, by name."""
    names = [name for name, one in inspect.getmembers(type(thing), lambda one: isinstance(one, property))]
    found = {name: getattr(thing, name) for name in names if not name.startswith("_")}
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}


DOG = """<mujoco model="dog"><worldbody><body name="trunk" pos="0 0 1"><freejoint/><geom size=".1"/><site name="s"/>
  <camera name="eye" resolution="4 3"/><body name="leg"><joint name="hip"/><geom size=".1" pos=".3 0 0"/></body></body>
  <body name="box"><freejoint/><geom size=".1"/></body></worldbody>
  <actuator><motor name="hip" joint="hip"/></actuator><sensor><gyro name="gyro" site="s"/></sensor></mujoco>"""


def test_arrays_that_are_copies_say_so_and_writing_into_them_moves_nothing(tmp_path: Path) -> None:
    (tmp_path / "dog.xml").write_text(DOG)
    with urlab.launch(tmp_path / "dog.xml", project=tmp_path, observations="full") as client:
        client.step(2, include_cameras=True)
        dog = client.articulations["dog"]
        handles: list[Any] = [dog, client.entities["dog_box"], dog.sensors["gyro"], dog.bodies["trunk"]]
        handles.append(next(iter(dog.cameras.values())))
        before = client.data.qpos.copy(), client.data.xpos.copy()
        for handle in handles:
            for name, array in arrays_of(handle).items():
                told = inspect.getdoc(getattr(type(handle), name)) or ""
                assert re.search("copy|own|setpoint buffer", told), name
                if array.flags.writeable and name != "ctrl_array":
                    array[:] = 77
        assert (client.data.qpos == before[0]).all()
        assert (client.data.xpos == before[1]).all()
        assert not any((array == 77).any() for handle in handles[:4] for array in arrays_of(handle).values())


def test_what_a_controller_tells_of_its_params_is_a_copy(client: URLabClient) -> None:
    controller = client.articulations["arm"].controller
    assert controller is not None
    controller.params["kp"]["waist"] = -1.0
    controller.schema.clear()
    assert controller.params["kp"]["waist"] == 300.0
    assert controller.schema


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.step(include_cameras=3), "include_cameras is a bool, a name, several names or .*, not 3"),
        (lambda c: c.runtime.restore_state(None), "the bytes of save_state or the name of a kept state, not None"),
        (lambda c: c.runtime.set_sim_speed("fast"), "percent must be a finite number, not 'fast'"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_told_with_what_it_may_be(
    client: URLabClient, wrong: Any, message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        wrong(client)


def test_a_class_of_the_caller_may_have_attributes_of_its_own() -> None:
    class Mine(URLabClient):
        def __init__(self) -> None:
            super().__init__()
            self.score = 1

    assert Mine().score == 1


# -- errors --------------------------------------------------------------------------------------------------------


def exceptions() -> list[type[BaseException]]:
    found = {
        kind
        for module in modules()
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, BaseException) and kind.__module__.startswith("urlab_client")
    }
    return sorted(found, key=lambda kind: kind.__name__)


MADE: dict[str, Any] = {
    "URLabRPCError": lambda kind: kind("bad_value", "no", op="step"),
    "URLabControllerError": lambda kind: kind("no", op="configure_controller"),
    "URLabValueError": lambda kind: kind("bad_value", "no", op="step"),
    "URLabTimeoutError": lambda kind: kind("tcp://h:1", 2.5, connected=False, op="step"),
    "ServerEndedError": lambda kind: kind("tcp://h:1", 2.5),
    "URLabPIEError": lambda kind: kind(code="pie_timeout", message="slow", state=PIEState.TIMEOUT),
    "URLabVersionMismatch": lambda kind: kind("9", "10"),
    "URLabLookupError": lambda kind: kind("no joint", kind="joint", name="x", known=["a"]),
}


@pytest.mark.parametrize("kind", exceptions(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_every_exception_survives_pickling(kind: type[BaseException], protocol: int) -> None:
    error = MADE.get(kind.__name__, lambda one: one("why"))(kind)
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is kind
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def test_the_errors_of_the_tree_are_all_tested_with_their_arguments() -> None:
    assert {URLabTimeoutError, URLabVersionMismatch, ServerEndedError, PicklableError} <= set(exceptions())
    own = [kind.__name__ for kind in exceptions() if "__init__" in vars(kind) or issubclass(kind, URLabRPCError)]
    assert sorted(own) == sorted(MADE)


def test_a_refused_param_is_one_error_wherever_it_is_found(client: URLabClient, server: Any, refuse: Any) -> None:
    controller = client.articulations["arm"].controller
    assert controller is not None
    server.replies["configure_controller"] = refuse("controller_schema_violation", "kp is below 0")
    for bad in ({"kp": {"waist": -5.0}}, {"kp": {"waist": 5.0}}):
        with pytest.raises(URLabControllerError) as raised:
            controller.configure(**bad)
        assert raised.value.code == "controller_schema_violation"
        assert raised.value.op == "configure_controller"
        assert isinstance(raised.value, ValueError)
        assert isinstance(raised.value, URLabRPCError)


@pytest.mark.parametrize("code", ["bad_value", "bad_mode", "invalid_mode", "dim_mismatch"])
def test_a_wrong_value_is_a_value_error_whichever_side_finds_it(client: URLabClient, server: Any, code: str) -> None:
    with pytest.raises(ValueError, match="is no ObservationLevel"):
        client.step(observations="all")
    server.replies["reset"] = {"op": "error", "code": code, "message": "scope must be one of all, state, time"}
    with pytest.raises(ValueError, match="scope must be one of") as raised:
        client.reset(scope="everything")
    assert isinstance(raised.value, URLabRPCError)
    assert raised.value.code == code


# -- what is shown -------------------------------------------------------------------------------------------------


def test_what_objects_say_of_themselves_fits_on_a_line(client: URLabClient, handshake: dict[str, Any]) -> None:
    arm = client.articulations["arm"]
    frame = CameraFrame(np.zeros((480, 640, 4), np.uint8), CameraMode.REAL, 7, 0.5)
    shown = {
        repr(client): "URLabClient('tcp://localhost', direct, 2 robots, step 0, t=0 s)",
        repr(arm): "URLabArticulation('arm', 2 joints, 2 actuators, 2 sensors, ue_controller)",
        repr(client.entities["box"]): "URLabEntity('box', free, body_id=5)",
        repr(arm.joints["waist"]): "Joint('waist', hinge, id=0, range=(-3, 3))",
        repr(arm.actuators["waist"]): "Actuator('waist', position, joint='waist', ctrlrange=(-1, 1))",
        repr(arm.sensors["tip"]): "Sensor('tip', dim=3, id=1)",
        repr(arm.bodies["hand"]): "Body('hand', id=2)",
        repr(arm.cameras["eye"]): "URLabCameraView('arm/eye', depth, 2x1, 0 frames)",
        repr(frame): "CameraFrame(real, 640x480, sim_time=0.5)",
        repr(PIEStartResult(PIEState.READY, "", handshake)): "PIEStartResult(state=ready)",
        repr(SimOptions(timestep=0.002)): "SimOptions(timestep=0.002)",
        repr(KeyframeInfo("home", 0.0, [0.0] * 30)): "KeyframeInfo(name='home', time=0, qpos=<30>)",
        repr(ContactsResult(0, False)): "ContactsResult(n_contacts=0, truncated=False)",
    }
    assert [text for text, expected in shown.items() if text != expected] == []
    info = ActorInfo("a", "B", "c", True, False, (0.1, 0.2, 0.3), (0.0, 0.0, 0.0, 1.0))
    assert len(repr(info)) < 160
    assert "\n" not in repr(arm.controller)
    assert (counted(1, "robot"), counted(0, "robot")) == ("1 robot", "0 robots")
    assert repr(URLabClient()) == "URLabClient('tcp://localhost', auto, no session)"


def test_notebooks_show_client_robot_and_picture(client: URLabClient) -> None:
    client.step()
    assert "<td>waist</td><td>0.7</td>" in client.articulations["arm"]._repr_html_()
    page = client._repr_html_()
    assert all(word in page for word in ("<td>arm</td>", "<td>dog</td>", "box, shelf, target", "urlab/9"))
    pixels = np.zeros((2, 3, 4), np.uint8)
    pixels[..., 0] = 200
    frame = CameraFrame(pixels, CameraMode.REAL, 7, 0.5)
    picture = re.search(r'src="data:image/png;base64,([^"]+)"', frame._repr_html_())
    assert picture is not None
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture[1]))))
    assert shown.shape == (2, 3, 3)
    assert (shown == [200, 0, 0]).all()
    depth = CameraFrame(np.ones((2, 3), np.float32), CameraMode.DEPTH)
    assert "data:image/png" in depth._repr_html_()
    view = client.articulations["arm"].cameras["wrist"]
    assert "<img" not in view._repr_html_()
    view.take(b"\1" * 8)
    assert "<img" in view._repr_html_()


def test_names_in_pages_are_escaped() -> None:
    assert "&lt;b&gt;" in URLabArticulation("<b>")._repr_html_()


# -- docstrings ----------------------------------------------------------------------------------------------------


def public_members(kind: type) -> list[tuple[str, Any]]:
    return [
        (f"{kind.__module__}.{kind.__qualname__}.{name}", member)
        for name, member in vars(kind).items()
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property | classmethod))
    ]


def test_every_public_name_has_a_docstring() -> None:
    missing = []
    for module in modules():
        if not module.__doc__:
            missing.append(module.__name__)
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:
                continue
            if inspect.isclass(thing):
                found = [(f"{module.__name__}.{name}", thing), *public_members(thing)]
            else:
                found = [(f"{module.__name__}.{name}", thing)] if inspect.isfunction(thing) else []
            missing += [where for where, one in found if not inspect.getdoc(one)]
    assert missing == []


def own_classes(module: Any) -> list[type]:
    return [one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == module.__name__]


def test_the_code_in_docstrings_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dog.xml").write_text(DOG)
    server = Server(ServerConfig(project=tmp_path / "project"), [tmp_path / "dog.xml"])
    plain = URLabClient.__init__

    def in_process(self: URLabClient, *args: Any, **options: Any) -> None:
        plain(self, *args, **{**options, "transport": InProcessTransport(server.dispatcher.handle)})

    monkeypatch.setattr(URLabClient, "__init__", in_process)
    owned = [(module, *own_classes(module)) for module in modules()]
    members = [one for several in owned for kind in several[1:] for _, one in public_members(kind)]
    texts = [inspect.cleandoc(one.__doc__ or "") for one in (*(one for several in owned for one in several), *members)]
    blocks = [block for text in texts for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]
    assert len(blocks) >= 4
    assert [text for text in texts if ">>>" in text and "doctest" in text] == [], "such lines would not be run"
    server.begin()
    try:
        for block in blocks:
            exec(compile(inspect.cleandoc(block), "docstring", "exec"), {"__name__": "docstring"})
        assert server.play.manager.engine.data.time > 0
    finally:
        server.close()
