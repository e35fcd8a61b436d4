"""Edits taken back and made again, over the wire."""

from typing import Any


def without_op(reply: Any) -> Any:
    return {name: value for name, value in reply.items() if name != "op"}


def test_an_edit_is_taken_back_and_made_again(builder: Any) -> None:
    builder.spawn("one", location=[1, 0, 0])
    before = builder.actors()
    builder.wire.ok("set_actor_transform", target="one", location=[2, 0, 0])
    after = builder.actors()
    assert without_op(builder.wire.ok("undo")) == {
        "label": "move hopper", "can_undo": "spawn hopper", "can_redo": "move hopper", "requires_pie_restart": False
    }  # fmt: skip
    assert builder.actors() == before
    assert without_op(builder.wire.ok("redo")) == {
        "label": "move hopper", "can_undo": "move hopper", "requires_pie_restart": False
    }  # fmt: skip
    assert builder.actors() == after


def test_nothing_to_take_back_has_the_code_of_the_op(builder: Any) -> None:
    for op in ("undo", "redo"):
        reply = builder.wire.ask(op)
        assert (reply["code"], reply["message"]) == (f"{op}_failed", f"there is nothing to {op} in level 'lab'")


def test_the_open_level_tells_what_can_be_done(builder: Any) -> None:
    assert without_op(builder.wire.ok("current_level")) == {
        "level_path": "/Game/Levels/lab", "unsaved_changes": False
    }  # fmt: skip
    builder.wire.ok("spawn_grid", blueprint="box", base_actor_id="g", count_x=3, count_y=2)
    builder.wire.ok("spawn_light", kind="spot")
    builder.wire.ok("undo")
    assert without_op(builder.wire.ok("current_level")) == {
        "level_path": "/Game/Levels/lab", "unsaved_changes": True,
        "can_undo": "spawn 6 actors", "can_redo": "spawn SpotLight",
    }  # fmt: skip
    builder.wire.ok("save_level")
    assert builder.wire.ok("current_level")["unsaved_changes"] is False
    assert builder.wire.ok("undo")["label"] == "spawn 6 actors"
    assert builder.actors() == {}
    assert builder.wire.ok("current_level")["unsaved_changes"] is True


def test_the_running_scene_has_it_from_its_next_start(builder: Any) -> None:
    builder.spawn("one")
    builder.play()
    reply = builder.wire.ok("undo")
    assert (reply["label"], reply["requires_pie_restart"]) == ("spawn hopper", True)
    assert builder.wire.ok("current_level")["unsaved_changes"] is False, (
        "the manager that playing put in does not count"
    )
    assert builder.wire.ok("snapshot")["actors"][-1]["actor_id"] == "one"
    assert builder.play()["articulations"] == []


def test_one_session_takes_back_what_another_did(builder: Any, connect: Any) -> None:
    builder.spawn("one")
    operator = connect(builder.server)
    operator.hello(operator=True)
    assert operator.ok("undo")["label"] == "spawn hopper"
    assert builder.wire.ok("redo")["label"] == "spawn hopper"
