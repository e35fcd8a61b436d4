from urlab_client import InProcessTransport


def test_a_request_is_a_call():
    assert InProcessTransport(bytes.upper).request(b"x", timeout_ms=1) == b"X"


def test_the_owner_is_told_once_that_it_closes():
    told: list[str] = []
    transport = InProcessTransport(bytes.upper, on_close=lambda: told.append("closed"))
    transport.close()
    transport.close()
    assert told == ["closed"]
