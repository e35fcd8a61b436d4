"""`urlab bench transports`: the same steps in process, in shared memory, over ipc and over TCP, side by side.

What is exported here is light; whatever measures is imported when a command runs.
"""

from urlab.cli.bench.transports.plan import SCENE_NAMES, TRANSPORTS, TransportsPlan, make_transports_plan

__all__ = ["SCENE_NAMES", "TRANSPORTS", "TransportsPlan", "make_transports_plan"]
