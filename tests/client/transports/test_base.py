import pytest

from urlab_client.transports.base import stream_endpoint


@pytest.mark.parametrize(
    ("told", "base", "expected"),
    [
        ("tcp://127.0.0.1:6000", "tcp://10.0.0.7", "tcp://10.0.0.7:6000"),
        ("tcp://*:6000", "tcp://127.0.0.1", "tcp://127.0.0.1:6000"),
        ("tcp://[::]:6000", "tcp://[fe80::1]", "tcp://[fe80::1]:6000"),
        ("ipc:///tmp/cams:5558", "ipc:///tmp/urlab", "ipc:///tmp/cams:5558"),
        ("ipc:///tmp/cams:5558", "tcp://127.0.0.1", "ipc:///tmp/cams:5558"),
        ("tcp://0.0.0.0:6000", "ipc:///tmp/urlab", "tcp://127.0.0.1:6000"),
        ("tcp://10.0.0.7:6000", "inproc://", "tcp://10.0.0.7:6000"),
        ("inproc://camera", "inproc://", "inproc://camera"),
    ],
)
def test_a_stream_is_looked_for_on_the_host_that_the_client_knows(told: str, base: str, expected: str):
    assert stream_endpoint(told, base) == expected
