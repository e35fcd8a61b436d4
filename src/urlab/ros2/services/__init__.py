"""Control of the simulation from ROS, by the services of ``simulation_interfaces``: requests in, responses out.

`serving` lists the services and opens them on a backend; `simulation` and `entities` are what they do, `entity_table`
which entities there are, `messages` their types. They work through a client of their own with an operator's session, so
that the client that drives keeps its session, and they run on the backend's thread for requests, one at a time: clock,
states and pictures wait for none of them.
"""

from urlab.ros2.services.serving import SERVICES, SimulationServices

__all__ = ["SERVICES", "SimulationServices"]
