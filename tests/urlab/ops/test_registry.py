import pytest

from urlab.ops import HANDLERS
from urlab.ops.registry import handler
from urlab_wire import CATALOGUE

NOT_SERVED_YET = {
    "scene": {
        "import_xml", "create_level", "load_level", "save_level", "current_level", "ensure_manager", "spawn_actor",
        "spawn_grid", "spawn_light", "destroy_actor", "destroy_asset", "set_actor_transform", "duplicate_actor",
        "actor_hierarchy", "snapshot",
    },
    "outliner": {
        "list_actors", "list_blueprints", "find_actors", "get_actor_bounds", "select_actor", "add_quick_convert",
        "remove_quick_convert",
    },
    "debug": {
        "draw_marker", "draw_line", "draw_box", "draw_arrow", "draw_axes", "clear_markers", "set_overlay_text",
    },
    "viewport": {"set_camera", "get_camera", "frame_actor", "set_viewport_mode", "track_actor", "untrack"},
}  # fmt: skip


def test_every_handler_serves_an_op_of_the_catalogue() -> None:
    assert set(HANDLERS) <= set(CATALOGUE)


def test_these_ops_and_no_others_are_not_served_yet() -> None:
    missing: dict[str, set[str]] = {}
    for name, spec in CATALOGUE.items():
        if name not in HANDLERS:
            missing.setdefault(spec.namespace, set()).add(name)
    assert missing == NOT_SERVED_YET


def test_every_handler_says_what_it_does() -> None:
    assert [name for name, function in HANDLERS.items() if not function.__doc__] == []


@pytest.mark.parametrize("op", HANDLERS)
def test_a_handler_answers_with_the_reply_of_its_op(op: str) -> None:
    assert HANDLERS[op].__annotations__["return"] is CATALOGUE[op].reply
    assert HANDLERS[op].__annotations__["request"] is CATALOGUE[op].request


def test_an_op_has_one_handler() -> None:
    with pytest.raises(ValueError, match="'step' has two handlers"):
        handler("step")(lambda *_: None)


def test_a_handler_needs_an_op() -> None:
    with pytest.raises(ValueError, match="no op 'fly'"):
        handler("fly")
