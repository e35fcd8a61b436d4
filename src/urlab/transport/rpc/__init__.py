"""Requests of ZeroMQ clients: the server, its connections, and ZMTP, the protocol between them."""

from urlab.transport.rpc.connection import RpcLimits
from urlab.transport.rpc.server import ZmqRpcServer

__all__ = ["RpcLimits", "ZmqRpcServer"]
