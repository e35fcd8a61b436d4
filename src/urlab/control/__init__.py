"""Controllers: from staged setpoints to ``data.ctrl``. They neither own nor step the simulation's data."""

from urlab.control.controller import Controller, controller_kinds, make_controller
from urlab.control.gains import gains_patch
from urlab.control.passthrough import PassthroughController
from urlab.control.pd import PDController
from urlab.control.staging import StagedControl
from urlab.control.twist import TwistController

__all__ = [
    "Controller",
    "PDController",
    "PassthroughController",
    "StagedControl",
    "TwistController",
    "controller_kinds",
    "gains_patch",
    "make_controller",
]
