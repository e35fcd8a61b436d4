"""What others may import from this room."""

import urlab.physics


def test_the_front_door_is_what_others_may_use() -> None:
    assert urlab.physics.__all__ == ["QUICK_STEP_S", "Engine", "PhysicsLoop", "Snapshot", "max_worker_threads"]
