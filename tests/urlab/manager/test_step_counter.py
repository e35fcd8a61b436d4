from urlab.manager.step_counter import StepCounter


def test_a_session_counts_from_its_hello() -> None:
    counter = StepCounter()
    counter.add(5)
    hello = counter.total
    counter.add(3)
    assert counter.between(hello, counter.total) == 3
    assert counter.between(0, counter.total) == 8


def test_after_a_reset_everybody_counts_from_there() -> None:
    counter = StepCounter()
    counter.add(5)
    counter.restart()
    counter.add(2)
    assert counter.between(0, counter.total) == counter.between(4, counter.total) == 2


def test_what_was_seen_before_a_reset_counts_nothing() -> None:
    counter = StepCounter()
    counter.add(5)
    seen = counter.total
    counter.add(1)
    counter.restart()
    assert counter.between(0, seen) == 0
