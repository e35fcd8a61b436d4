import threading
from typing import Any

from urlab.transport.heartbeat import Heartbeat


def test_it_beats_while_it_is_wanted(wait_until: Any) -> None:
    beats: list[int] = []
    heartbeat = Heartbeat(lambda: beats.append(1), period_s=0.001)
    assert beats == []
    heartbeat.want(True)
    wait_until(lambda: len(beats) > 3)
    heartbeat.close()
    after = len(beats)
    threading.Event().wait(0.01)
    assert len(beats) == after


def test_it_rests_when_it_is_no_longer_wanted(wait_until: Any) -> None:
    beats: list[int] = []
    heartbeat = Heartbeat(lambda: beats.append(1), period_s=0.001)
    heartbeat.want(True)
    wait_until(lambda: beats)
    heartbeat.want(False)
    threading.Event().wait(0.01)
    after = len(beats)
    threading.Event().wait(0.02)
    assert len(beats) == after
    heartbeat.want(True)
    wait_until(lambda: len(beats) > after)
    heartbeat.close()


def test_the_first_beat_comes_at_once_and_closing_does_not_wait_for_the_next() -> None:
    beaten = threading.Event()
    heartbeat = Heartbeat(beaten.set, period_s=3600)
    heartbeat.want(True)
    assert beaten.wait(5)
    heartbeat.close()
    heartbeat.close()
    assert not heartbeat._thread.is_alive()


def test_one_that_was_never_wanted_can_be_closed() -> None:
    heartbeat = Heartbeat(lambda: None, period_s=1)
    heartbeat.close()
    assert not heartbeat._thread.is_alive()
