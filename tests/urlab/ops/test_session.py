import pytest

from urlab.errors import SessionExpired
from urlab.ops.session import MAX_OBSERVERS, Session, SessionTable


def test_the_observer_that_has_been_silent_longest_makes_room() -> None:
    table = SessionTable()
    observers = [Session(observer=True) for _ in range(MAX_OBSERVERS)]
    for one in observers:
        table.open(one)
    table.find(observers[0].id)
    table.open(Session(observer=True))
    assert table.find(observers[0].id) is observers[0]
    with pytest.raises(SessionExpired):
        table.find(observers[1].id)


def test_observers_never_push_out_the_plain_session() -> None:
    table, plain = SessionTable(), Session()
    table.open(plain)
    for _ in range(MAX_OBSERVERS + 10):
        table.open(Session(observer=True))
    assert table.find(plain.id) is plain


def test_an_expired_session_is_told_what_to_do() -> None:
    with pytest.raises(SessionExpired, match="hello"):
        SessionTable().find(None)
    with pytest.raises(SessionExpired, match="hello again"):
        SessionTable().find("gone")
