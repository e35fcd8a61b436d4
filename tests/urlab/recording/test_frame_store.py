import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from urlab.recording.frame_store import FrameStore


def append(store, number):
    store.append(float(number), float(number), np.full(2, number), np.full(1, -number))


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(200, 2000))
def test_it_is_a_queue_that_forgets_from_the_front(window_sizes, max_bytes):
    store, expected = FrameStore(2, 1, max_bytes), []
    for number, window in enumerate(window_sizes):
        append(store, number)
        store.drop_before(number - window)
        expected = [one for one in [*expected, number] if one >= number - window]
        times, qpos, qvel = store.arrays()
        if not store.dropped_for_space:
            assert times.tolist() == expected
        assert times.tolist() == expected[len(expected) - store.count :]
        assert qpos.tolist() == [[one, one] for one in times]
        assert qvel.tolist() == [[-one] for one in times]


def test_a_long_run_in_a_short_window_keeps_its_memory():
    store = FrameStore(2, 1, 40_000)
    for number in range(20_000):
        append(store, number)
        store.drop_before(number - 100)
    assert store.count == 101
    assert store.nbytes <= 3 * 5000
    assert not store.dropped_for_space


def test_memory_stays_below_the_limit_and_the_newest_frames_stay():
    store = FrameStore(2, 1, 40_000)
    for number in range(20_000):
        append(store, number)
    assert store.dropped_for_space
    assert 30_000 < store.nbytes <= 40_000
    assert store.arrays()[0].tolist() == list(range(20_000 - store.count, 20_000))


@pytest.mark.parametrize("max_bytes", [0, 1, 100])
def test_a_tiny_limit_still_keeps_the_newest_frame(max_bytes):
    store = FrameStore(2, 1, max_bytes)
    for number in range(10):
        append(store, number)
    assert store.arrays()[0][-1] == 9.0
    assert store.count <= 2


def test_clear_forgets_everything():
    store = FrameStore(2, 1, 0)
    for number in range(10):
        append(store, number)
    store.clear()
    assert (store.count, store.dropped_for_space) == (0, False)
    append(store, 7)
    assert store.arrays()[0].tolist() == [7.0]
