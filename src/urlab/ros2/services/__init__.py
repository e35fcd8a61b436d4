"""Control of the simulation from ROS, by the services of ``simulation_interfaces``.

`SimulationServices` opens them on a backend. They work through a client of their own with an operator's session, so
that whoever drives keeps the session, and they run on the backend's thread for requests, one at a time: clock, states
and pictures wait for none of them.
"""

from urlab.ros2.services.serving import SimulationServices
from urlab.ros2.services.table import SERVICES, Service

__all__ = ["SERVICES", "Service", "SimulationServices"]
