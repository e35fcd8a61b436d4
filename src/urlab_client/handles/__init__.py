"""Handles: objects that stand for the parts of a running scene."""

from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.camera import URLabCameraView
from urlab_client.handles.controller import URLabController, URLabPDController
from urlab_client.handles.entity import URLabEntity
from urlab_client.handles.frame import CameraFrame
from urlab_client.handles.parts import Actuator, Body, Joint, Sensor

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
