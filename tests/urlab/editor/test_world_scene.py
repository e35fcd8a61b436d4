"""What pages are sent of a world that moves, as they read it, against the places that MuJoCo has."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import mujoco
import numpy as np
import pytest
import viser
import zstandard
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from urlab.editor.world_scene import WorldScene

SCENE = """<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="fast" pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
  <body name="slow" pos="1 0 1"><freejoint/><geom type="sphere" size="0.1"/></body>
  <body name="still" pos="2 0 1"><freejoint/><geom size="0.1 0.2" type="cylinder"/><geom size="0.15"/></body>
</worldbody></mujoco>"""
CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": (1.0, 0.0, 0.0, 0.0), "position": (-3.0, 0.0, 2.0), "fov": 1.0, "near": 0.01,
    "far": 1000.0, "image_height": 600, "image_width": 900, "look_at": (0.0, 0.0, 0.0), "up_direction": (0.0, 0.0, 1.0),
}  # fmt: skip
BATCHED = ("batched_positions", "batched_wxyzs")


class Page:
    """A page that draws nothing: where everything in the world stands, as it was told."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.placed: dict[str, dict[str, Any]] = {}
        self.changes: list[tuple[str, str]] = []
        """The nodes that were changed, and what of them."""

    def read_to(self, mark: str) -> None:
        """Take all that comes, until the node of that name has come as well."""
        while mark not in self.placed:
            self._take(self._socket.recv(20))

    def _take(self, frame: Any) -> None:
        length = int.from_bytes(frame[8:16], "little")
        told = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(frame[16 : 16 + length]))
        arrays, at = [], 16 + length
        for size in told["binaryBufferLengths"]:
            at += -at % 8
            arrays.append(frame[at : at + size])
            at += size
        for one in told["messages"]:
            given = one.get("props") or one.get("updates") or {}
            placed = {
                key: np.frombuffer(arrays[value["__binary_index"]], value["dtype"]).copy()
                for key, value in given.items()
                if key in BATCHED
            }
            if "updates" in one:
                self.changes += [(one["name"], key) for key in placed]
            if "name" in one:
                self.placed.setdefault(one["name"], {}).update(placed)


@pytest.fixture
def server() -> Iterator[viser.ViserServer]:
    opened = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    yield opened
    opened.stop()


@pytest.fixture
def open_page(server: viser.ViserServer) -> Iterator[Callable[[], Page]]:
    with contextlib.ExitStack() as opened:

        def start() -> Page:
            version = Subprotocol(f"viser-v{viser.__version__}")
            address = f"ws://127.0.0.1:{server.get_port()}"
            socket = opened.enter_context(connect(address, subprotocols=[version], max_size=None, compression=None))
            socket.send(msgspec.msgpack.encode(CAMERA))
            return Page(socket)

        yield start


async def ignore(_event: Any, _body: int) -> None:
    """Nothing is clicked here."""


def test_every_page_has_the_poses_of_the_world_and_what_rests_is_not_sent_again(
    server: viser.ViserServer, open_page: Callable[[], Page]
):
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    scene = WorldScene(server, ignore, ignore)
    scene.show(model, data, {})
    server.scene.add_frame("/begin")
    pages = [open_page(), open_page()]
    for page in pages:
        page.read_to("/begin")
        page.changes.clear()
    tolerance = 1e-5 * model.stat.extent
    steps = 40
    for _ in range(steps):
        data.qpos[0] += 0.01
        data.qpos[3:7] = data.qpos[3:7] + 0.02 * np.array([0, 1, 0, 0])
        data.qpos[7] += 0.3 * tolerance
        data.qpos[14] += 1e-9
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_kinematics(model, data)
        scene.update(data, None)
    server.scene.add_frame("/end")
    late = open_page()
    for page in (*pages, late):
        page.read_to("/end")
        shown = {name: one for name, one in page.placed.items() if name.startswith("/world/")}
        assert len(shown) == 3
        for body in range(1, model.nbody):
            place, turn = data.xpos[body], data.xquat[body]
            near = [one for one in shown.values() if np.allclose(one["batched_positions"], place, atol=tolerance)]
            assert len(near) == 1
            np.testing.assert_allclose(near[0]["batched_wxyzs"], turn, atol=1e-5)
    for page in pages:
        counts = sorted(sum(name == one for one, _ in page.changes) for name in {name for name, _ in page.changes})
        assert len(counts) == 2, "the body that stands still was sent"
        assert counts[0] <= steps / 2, "a body that crawls is sent when it has come a little way"
