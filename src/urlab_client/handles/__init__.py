"""Handles: objects that stand for the parts of a running scene, made anew with every handshake.

`build` makes them: `articulation` with its `joint`, `actuator`, `sensor`, `body` and `controller` parts, `entity`, and
`camera` with the `frame` that it saw last.
"""

from urlab_client.handles.actuator import Actuator
from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.body import Body
from urlab_client.handles.camera import URLabCameraView
from urlab_client.handles.controller import URLabController, URLabPDController
from urlab_client.handles.entity import URLabEntity
from urlab_client.handles.frame import CameraFrame
from urlab_client.handles.joint import Joint
from urlab_client.handles.sensor import Sensor

__all__ = [
    "Actuator",
    "Body",
    "CameraFrame",
    "Joint",
    "Sensor",
    "URLabArticulation",
    "URLabCameraView",
    "URLabController",
    "URLabEntity",
    "URLabPDController",
]
