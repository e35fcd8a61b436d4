from urlab.compile import importing


def test_the_front_door_is_what_it_says() -> None:
    assert set(importing.__all__) == {"DEFAULT_LIMITS", "Bundle", "Limits", "import_file", "keep", "stop_child_of"}
    assert all(hasattr(importing, name) for name in importing.__all__)
