"""What others may import from this room."""

import urlab.compile


def test_the_front_door_is_what_others_may_use() -> None:
    assert urlab.compile.__all__ == ["CompiledArticulation", "CompiledEntity", "CompiledScene", "compile_scene"]
