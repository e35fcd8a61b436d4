"""Controllers: setpoints in, ``data.ctrl`` out. They neither own nor step the simulation's data.

`staging` holds the setpoints of one articulation; `controller` has what every controller is, and the pass-through one;
`pd` is another; `twist` holds a velocity command. Every module of this folder is imported here, so declaring a
controller registers it.
"""

import importlib
import pkgutil

from urlab.control.controller import Controller, make_controller
from urlab.control.pd import gains_patch
from urlab.control.staging import StagedControl
from urlab.control.twist import TwistCommand

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Controller", "StagedControl", "TwistCommand", "gains_patch", "make_controller"]
