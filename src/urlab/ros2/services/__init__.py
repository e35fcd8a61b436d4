"""Control of the simulation from ROS, by the services of ``simulation_interfaces``.

`SimulationServices` opens them on a backend. They work through a client of their own with an operator's session, so
that the client that drives keeps its session, and they run on the backend's thread for requests, one at a time: clock,
states and pictures wait for none of them.
"""

from urlab.ros2.services.serving import SERVICES, SimulationServices

__all__ = ["SERVICES", "SimulationServices"]
