import pytest

from urlab.access import Role, RpcCaller
from urlab.errors import SessionExpired
from urlab.ops.session import MAX_OBSERVERS, MAX_OPERATORS, Session, SessionTable


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


def test_observers_never_push_out_operators_nor_operators_observers() -> None:
    table, operator, observer = SessionTable(), Session(operator=True), Session(observer=True)
    table.open(operator)
    table.open(observer)
    for _ in range(MAX_OBSERVERS - 1):
        table.open(Session(observer=True))
    for _ in range(MAX_OPERATORS - 1):
        table.open(Session(operator=True))
    assert table.find(operator.id) is operator
    assert table.find(observer.id) is observer
    table.open(Session(observer=True))
    assert table.find(operator.id) is operator


def test_a_caller_with_many_sessions_pushes_out_its_own() -> None:
    table, quiet = SessionTable(), Session(observer=True, caller=RpcCaller("ann", Role.OBSERVER))
    table.open(quiet)
    for _ in range(2 * MAX_OBSERVERS):
        table.open(Session(observer=True, caller=RpcCaller("bob", Role.OBSERVER)))
    assert table.find(quiet.id) is quiet


def test_a_session_id_of_any_length_is_told_back_in_short() -> None:
    with pytest.raises(SessionExpired) as refused:
        SessionTable().find("x" * 1_000_000)
    assert len(refused.value.message) < 500
