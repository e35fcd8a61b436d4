"""Work that is handed from one thread to another."""

import threading

import pytest

from urlab.cameras.errand import Errand


def test_whoever_asked_gets_what_it_returned() -> None:
    errand = Errand(lambda: 7)
    assert not errand.done()
    worker = threading.Thread(target=errand.run)
    worker.start()
    assert errand.result(5) == 7
    assert errand.done()
    assert errand.result(5) == 7
    worker.join()


def test_whoever_asked_gets_what_it_raised_and_whoever_does_it_does_not() -> None:
    def late() -> None:
        raise TimeoutError("mine")

    errand = Errand(late)
    errand.run()
    with pytest.raises(TimeoutError, match="mine"):
        errand.result(5)


def test_waiting_ends_in_time() -> None:
    errand = Errand(lambda: 7)
    assert not errand.wait(0.001)
    with pytest.raises(TimeoutError, match=r"within 0\.001 s"):
        errand.result(0.001)
    errand.run()
    assert errand.wait(0)


def test_what_was_given_up_is_not_begun() -> None:
    done: list[int] = []
    errand = Errand(lambda: done.append(1))
    errand.give_up()
    errand.run()
    assert not done
    assert not errand.done()


def test_it_can_fail_without_being_done() -> None:
    errand = Errand(lambda: 7)
    errand.fail(ValueError("no GL"))
    with pytest.raises(ValueError, match="no GL"):
        errand.result(5)
