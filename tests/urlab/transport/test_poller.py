"""Both pollers tell the same."""

import socket

import pytest

from urlab.transport.poller import READ, WRITE, SelectorPoller, make_poller


@pytest.fixture(params=[make_poller, SelectorPoller])
def poller(request):
    one = request.param()
    yield one
    one.close()


@pytest.fixture
def pair():
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


def test_nothing_to_do(poller, pair):
    poller.register(pair[0].fileno(), READ)
    assert poller.poll(0) == []


def test_something_to_read(poller, pair):
    poller.register(pair[0].fileno(), READ)
    pair[1].send(b"x")
    assert poller.poll(None) == [(pair[0].fileno(), READ)]


def test_room_to_write_only_while_it_is_watched_for(poller, pair):
    here = pair[0].fileno()
    poller.register(here, READ | WRITE)
    assert poller.poll(0) == [(here, WRITE)]
    poller.modify(here, READ)
    assert poller.poll(0) == []
    poller.unregister(here)


def test_a_peer_that_has_gone_is_something_to_read(poller, pair):
    poller.register(pair[0].fileno(), READ)
    pair[1].close()
    ((_, events),) = poller.poll(1)
    assert events & READ
