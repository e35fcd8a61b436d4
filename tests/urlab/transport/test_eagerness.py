"""Looking again pays only while events follow each other closely."""

import time

from urlab.transport.eagerness import LOOK_S, Eagerness


class Source:
    """Events that come ``gap_s`` after one asks for the next; remembers how it was asked."""

    def __init__(self, gap_s):
        self.gap_s = gap_s
        self.looks = self.sleeps = 0

    def next(self, eagerness):
        self._due = time.perf_counter() + self.gap_s
        return eagerness.wait(self._poll)

    def _poll(self, timeout):
        if timeout is None:
            self.sleeps += 1
            time.sleep(max(0.0, self._due - time.perf_counter()))
            return ["event"]
        self.looks += 1
        return ["event"] if time.perf_counter() >= self._due else []


def test_at_first_it_sleeps():
    source = Source(0.0)
    assert source.next(Eagerness()) == ["event"]
    assert (source.looks, source.sleeps) == (0, 1)


def test_after_events_in_close_order_it_looks():
    source, eagerness = Source(0.0), Eagerness()
    for _ in range(10):
        source.next(eagerness)
    assert source.looks >= 5
    assert source.sleeps <= 5


def test_when_events_become_rare_it_goes_back_to_sleep_and_looks_no_more():
    close, rare, eagerness = Source(0.0), Source(5 * LOOK_S), Eagerness()
    for _ in range(10):
        close.next(eagerness)
    for _ in range(10):
        rare.next(eagerness)
    looked = rare.looks
    for _ in range(10):
        rare.next(eagerness)
    assert rare.looks == looked
    assert rare.sleeps == 20
