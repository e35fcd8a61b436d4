import socket as sockets
from pathlib import Path
from typing import Any

import pytest

from urlab.errors import ConfigError
from urlab.transport.endpoint import listen


def shout(frame: bytes) -> bytes:
    return frame.upper()


def test_port_0_is_any_free_port(serve: Any) -> None:
    first, second = serve(shout), serve(shout)
    assert first.endpoint.startswith("tcp://127.0.0.1:")
    assert first.endpoint != second.endpoint


def test_a_taken_port_is_named_with_the_option_to_change(serve: Any) -> None:
    port = int(serve(shout).endpoint.rpartition(":")[2])
    with pytest.raises(ConfigError) as refused:
        serve(shout, port=port)
    assert all(word in refused.value.message for word in (f"port {port}", "--step-port", "in use"))


def test_an_address_of_another_machine_is_refused(serve: Any) -> None:
    with pytest.raises(ConfigError, match="--host"):
        serve(shout, base="tcp://192.0.2.1")


def test_localhost_is_the_loopback_address(serve: Any) -> None:
    assert serve(shout, base="tcp://localhost").endpoint.startswith("tcp://127.0.0.1:")


def test_an_ipc_endpoint_ends_with_its_number(serve: Any, connect: Any, short_folder: Path) -> None:
    server = serve(shout, base=f"ipc://{short_folder}/u", port=5559)
    assert server.endpoint == f"ipc://{short_folder}/u:5559"
    client = connect(server.endpoint)
    client.send(b"hello")
    assert client.recv() == b"HELLO"


def test_ipc_number_0_is_any_free_number(serve: Any, short_folder: Path) -> None:
    endpoints = {serve(shout, base=f"ipc://{short_folder}/u").endpoint for _ in range(3)}
    assert len(endpoints) == 3


def test_the_socket_file_of_a_dead_server_is_taken_over(serve: Any, connect: Any, short_folder: Path) -> None:
    path = short_folder / "u:5559"
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as dead:
        dead.bind(str(path))
    assert path.exists()
    client = connect(serve(shout, base=f"ipc://{short_folder}/u", port=5559).endpoint)
    client.send(b"hello")
    assert client.recv() == b"HELLO"


def test_the_socket_file_of_a_living_server_is_left_alone(serve: Any, connect: Any, short_folder: Path) -> None:
    living = serve(shout, base=f"ipc://{short_folder}/u", port=5559)
    with pytest.raises(ConfigError) as refused:
        serve(shout, base=f"ipc://{short_folder}/u", port=5559)
    assert all(word in refused.value.message for word in (living.endpoint, "in use", "--step-port"))
    client = connect(living.endpoint)
    client.send(b"alive?")
    assert client.recv() == b"ALIVE?"


def test_an_ipc_path_in_a_folder_that_does_not_exist_is_refused(short_folder: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be bound"):
        listen(f"ipc://{short_folder}/no/u", 5559, option="--step-port")
