from urlab.editor.controls import Controls


def test_the_first_page_holds_the_controls_and_the_others_look_on():
    controls = Controls(lambda: None)
    controls.add(1)
    controls.add(2)
    assert controls.holder == 1
    assert controls.ask(2) is False
    assert (controls.holder, controls.asking) == (1, (2,))


def test_controls_that_are_given_away_go_to_the_page_that_has_asked_for_longest():
    controls = Controls(lambda: None)
    for page in (1, 2, 3):
        controls.add(page)
    controls.ask(3)
    controls.ask(2)
    controls.give(1)
    assert (controls.holder, controls.asking) == (3, (2,))


def test_a_page_that_is_closed_hands_the_controls_on_to_the_oldest_page_when_none_has_asked():
    controls = Controls(lambda: None)
    for page in (1, 2, 3):
        controls.add(page)
    controls.remove(1)
    assert controls.holder == 2
    controls.remove(2)
    controls.remove(3)
    assert controls.holder is None


def test_a_page_alone_keeps_the_controls():
    controls = Controls(lambda: None)
    controls.add(1)
    controls.give(1)
    assert controls.holder == 1


def test_a_page_may_take_the_controls_and_every_change_is_told():
    told: list[int | None] = []
    controls = Controls(lambda: told.append(controls.holder))
    controls.add(1)
    controls.add(2)
    controls.ask(2)
    controls.take(2)
    assert (controls.holder, controls.asking) == (2, ())
    assert told == [1, 1, 1, 2]


def test_a_page_that_has_gone_takes_nothing():
    controls = Controls(lambda: None)
    controls.add(1)
    controls.take(7)
    controls.give(7)
    controls.remove(7)
    assert controls.holder == 1
