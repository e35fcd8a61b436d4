"""Plugins: the example of the page as it stands there, what goes wrong while one is loaded, and step callbacks."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import urlab
from urlab import plugins
from urlab.errors import ConfigError
from urlab_client import URLabClient, URLabRPCError

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"

CART = """
<mujoco model="cart"><worldbody><light pos="0 0 3"/><body name="cart" pos="0 0 .5">
    <joint name="x" type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .1" mass="2"/>
    <camera name="eye" pos="-1 0 0" xyaxes="0 -1 0 0 0 1" resolution="16 12"/></body></worldbody>
  <actuator><motor name="push" joint="x"/></actuator></mujoco>"""

SCRIPT = """
import json, sys
import numpy as np
import urlab

with urlab.launch("cart.xml", project=".", plugins=["my_plugin"]) as client:
    cart = client.articulations["cart"]
    cart.ctrl_array[:] = 1.0
    client.step(10)
    bang = float(cart.last_applied_ctrl[0])
    cart.controller.configure(strength=0.0)
    speed = float(client.data.qvel[0])
    reply = client.runtime.call("set_wind", force=3.0)
    client.step(100)
    gained = float(client.data.qvel[0]) - speed
    client.runtime.set_camera_mode("eye", "nearness")
    client.step(1, include_cameras={"eye": "sync"})
    frame = cart.cameras["eye"].latest
    listed = client._ops_meta["set_wind"]
    print(json.dumps({
        "bang": bang, "reply": reply, "gained": gained, "mode": frame.mode, "nearest": float(np.max(frame.pixels)),
        "namespace": listed["namespace"], "kind": cart.controller.kind,
    }))
"""


REMOTE = """
import json
from urlab.child_process import ServerProcess
from urlab_client import URLabClient

with ServerProcess("cart.xml", "--project", ".", "--plugin", "my_plugin") as server:
    port = int(server.endpoints["step"].rpartition(":")[2])
    with URLabClient("tcp://127.0.0.1", step_port=port, step_mode="direct") as client:
        client.discover()
        mode = client.runtime.set_camera_mode("eye", "nearness")
        client.step(1, include_cameras={"eye": "sync"})
        frame = client.articulations["cart"].cameras["eye"].latest
        refused = client._channel.transport.rpc(
            {"op": "set_wind", "session_id": client.session_id, "force": "hard"}, rcv_timeout_ms=60_000
        )
        print(json.dumps({"mode": mode, "type": str(frame.pixels.dtype), "code": refused["code"]}))
"""


SCALED = """
import numpy as np
from urlab.plugins import Controller

class Scaled(Controller, kind="scaled"):
    follows_state = False
    def __init__(self, articulation, params):
        self.ids = [one.id for one in articulation.controls]
    def params(self):
        return {}
    def schema(self):
        return {}
    def configure(self, patch):
        pass
    def apply(self, model, data, setpoints):
        data.ctrl[self.ids] = 3 * setpoints

class Batched(Scaled, kind="batched"):
    def for_batch(self, batch):
        return Law(self.ids, batch)

class Law:
    follows_state = False
    def __init__(self, ids, batch):
        self.width, self.ids, self.ctrl = len(ids), ids, batch.ctrl
    def stage(self, setpoints):
        self.ctrl[:, self.ids] = 3 * setpoints
    def apply(self):
        pass
"""

IN_A_BATCH = """
import numpy as np, sys
import urlab

with urlab.launch("cart.xml", project=".", plugins=["my_plugin"]) as client:
    with client.batch(2) as batch:
        batch.step(np.ones((2, 1)), n_steps=20)
        together = batch.qvel[:, 0].tolist()
    client.articulations["cart"].ctrl_array[:] = 1.0
    client.step(20)
    assert together == [client.data.qvel[0]] * 2, together
"""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model, a sidecar that names the example's controller, and the example."""
    (example,) = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (tmp_path / "my_plugin.py").write_text(example)
    (tmp_path / "cart.xml").write_text(CART)
    (tmp_path / "cart.urlab.toml").write_text('[controller]\nkind = "bang"\n')
    return tmp_path


def test_the_example_of_the_page_works(folder: Path) -> None:
    ran = run(folder, "-c", SCRIPT)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["bang"] == 1.0
    assert told["kind"] == "bang"
    assert told["reply"] == {"op": "set_wind_ok", "before": 0.0, "hard_landings": 0}
    assert told["gained"] == pytest.approx(3.0 / 2 * 100 * 0.002)
    assert (told["mode"], told["namespace"]) == ("nearness", "plugin")
    assert told["nearest"] == pytest.approx(1 / 0.9, rel=0.01)


@pytest.mark.parametrize("kind", ["batched", "scaled"])
def test_a_batch_runs_the_controllers_own_law_or_is_refused(folder: Path, kind: str) -> None:
    (folder / "my_plugin.py").write_text(SCALED)
    (folder / "cart.urlab.toml").write_text(f'[controller]\nkind = "{kind}"\n')
    ran = run(folder, "-c", IN_A_BATCH)
    if kind == "batched":
        assert ran.returncode == 0, ran.stderr
    else:
        assert "a 'scaled' controller runs in one simulation only: it has no law for a batch" in ran.stderr


def test_a_client_in_another_process_knows_the_plugins_of_the_server(folder: Path) -> None:
    ran = run(folder, "-c", REMOTE)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"mode": "nearness", "type": "float32", "code": "bad_value"}


TWICE = """
from urlab.plugins import Reply, Request, op

class AgainReply(Reply, tag="step_ok"): ...
class AgainRequest(Request["AgainReply"], tag="step"): ...

@op(AgainRequest)
def again(context, request): ...
"""
BROKEN = {
    "nowhere": ("", "there is no module 'nowhere'"),
    "broken": ("import nowhere.at_all", "No module named 'nowhere'"),
    "crashing": ("1 / 0", "ZeroDivisionError: division by zero"),
    "misspelt": ("def f(:", "SyntaxError"),
    "twice": (TWICE, "there is an op 'step' already"),
    "taken": (
        "from urlab.plugins import Controller\nclass Mine(Controller, kind='pd'): ...\n",
        "controller kind 'pd' is already",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_plugin_that_cannot_be_loaded_ends_the_start_with_one_line(tmp_path: Path, name: str) -> None:
    text, problem = BROKEN[name]
    if text:
        (tmp_path / f"{name}.py").write_text(text)
    ran = run(tmp_path, "-m", "urlab", "serve", "--project", ".", "--plugin", name)
    assert ran.returncode == 2, ran.stderr
    (line,) = ran.stderr.strip().splitlines()
    assert line.startswith(f"error: --plugin {name}: ")
    assert problem in line


def test_a_file_is_no_module() -> None:
    with pytest.raises(ConfigError, match="my_plugin, from the folder"):
        plugins.load(["folder/my_plugin.py"])


# -- step callbacks -----------------------------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Writes plugins, and forgets their callbacks afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugins, "_before", [])
    monkeypatch.setattr(plugins, "_after", [])

    def write(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(f"from urlab.plugins import *\n{text}")
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return write


@pytest.fixture
def cart(tmp_path: Path) -> Iterator[Callable[..., URLabClient]]:
    (tmp_path / "cart.xml").write_text(CART)
    clients: list[URLabClient] = []

    def launch(**options: Any) -> URLabClient:
        clients.append(urlab.launch(tmp_path / "cart.xml", project=tmp_path, **options))
        return clients[-1]

    yield launch
    for client in clients:
        client.close()


COUNTING = """
calls = []
@before_step
def early(model, data): calls.append(("early", data.time))
@after_step
def late(model, data): calls.append(("late", data.time))
"""


def test_callbacks_run_around_every_sub_step(module: Any, cart: Any) -> None:
    client = cart(plugins=[module("counting_plugin", COUNTING)])
    client.step(3)
    calls = sys.modules["counting_plugin"].calls
    assert [name for name, _ in calls] == ["early", "late"] * 3
    assert [time for _, time in calls] == pytest.approx([0, 0.002, 0.002, 0.004, 0.004, 0.006])


def test_several_plugins_are_loaded_in_their_order(module: Any, cart: Any) -> None:
    names = [
        module(f"{word}_plugin", f"@before_step\ndef set_it(model, data): data.ctrl[0] = data.ctrl[0] {change}")
        for word, change in (("first", "+ 3"), ("second", "* 2"))
    ]
    client = cart(plugins=names)
    client.step()
    assert client.articulations["cart"].last_applied_ctrl.tolist() == [6.0]


def test_callbacks_of_a_plugin_that_is_not_named_do_not_run(module: Any, cart: Any) -> None:
    cart(plugins=[module("counting_plugin", COUNTING)])
    other = cart()
    other.step(3)
    assert sys.modules["counting_plugin"].calls == []


def test_a_callback_changes_what_the_step_does(module: Any, cart: Any) -> None:
    name = module("driving_plugin", "@before_step\ndef drive(model, data): data.ctrl[0] = 2.0")
    client = cart(plugins=[name])
    client.step(50)
    model = mujoco.MjModel.from_xml_string(CART)
    data = mujoco.MjData(model)
    for _ in range(50):
        data.ctrl[0] = 2.0
        mujoco.mj_step(model, data)
    assert np.array_equal(client.data.qpos, data.qpos)


FAILING = """
@after_step
def trip(model, data):
    if 0.009 < data.time < 0.011: raise RuntimeError("no further")
"""


def test_a_callback_that_fails_fails_the_step_and_names_itself(module: Any, cart: Any) -> None:
    client = cart(plugins=[module("failing_plugin", FAILING)])
    with pytest.raises(URLabRPCError, match=r"failing_plugin\.trip failed after the step.*no further"):
        client.step(20)
    reply = client.step(5)
    assert (reply["time"], reply["step"]) == (pytest.approx(0.02), 10)


def test_a_callback_that_fails_pauses_live_physics(module: Any, cart: Any) -> None:
    client = cart(plugins=[module("failing_plugin", FAILING)], step_mode="live")
    while not client._rpc("pie_status")["paused"]:
        client.step()
    assert client.step()["time"] == pytest.approx(0.01)
