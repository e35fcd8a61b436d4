"""What tells one scene from another, so that topics stay where nothing changed."""

import copy
import hashlib
from collections.abc import Iterator

import mujoco
import numpy as np

from urlab_client import URLabCameraView, URLabClient


class NoScene(LookupError):
    """There is nothing to bridge at the moment; the message says why."""


def scene_signature(client: URLabClient) -> str:
    """A digest of everything that topics depend on: the model, the names, the cameras, where the streams are.

    Physics options are left out: a changed time step or gravity is no other scene. `NoScene` without a model.
    """
    digest = hashlib.sha256(_model_bytes(client))
    digest.update("\0".join(_words(client)).encode())
    return digest.hexdigest()


def _model_bytes(client: URLabClient) -> bytes:
    if client.model is None:
        raise NoScene("the server tells no model")
    model = copy.copy(client.model)
    mujoco.mj_defaultOption(model.opt)
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def _words(client: URLabClient) -> Iterator[str]:
    yield from client.entities
    for prefix, robot in client.articulations.items():
        yield from (prefix, type(robot.controller).__name__, str(robot.control_mode))
        for view in robot.cameras.values():
            yield from _camera(view)
    for view in client.global_cameras.values():
        yield from _camera(view)
    yield from (str(client.streams.get(name)) for name in ("state", "control"))


def _camera(view: URLabCameraView) -> Iterator[str]:
    yield from (view.full_name, str(view.mode), str(view.resolution), str(view.zmq_endpoint), str(view.zmq_topic))
