"""Requests of ZeroMQ clients: the server, its connections, and ZMTP, the protocol between them.

`curve_server` is the one for clients with keys, beyond this machine.
"""

from urlab.transport.rpc.connection import RpcLimits
from urlab.transport.rpc.curve_server import CurveRpcServer, KeyLimits
from urlab.transport.rpc.server import ZmqRpcServer

__all__ = ["CurveRpcServer", "KeyLimits", "RpcLimits", "ZmqRpcServer"]
