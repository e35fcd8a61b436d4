"""The catalogue holds the ops of the protocol reference as the reference has them, and our extensions."""

import pytest

from urlab_wire import CATALOGUE
from urlab_wire.catalogue import meta_ops
from urlab_wire.enums import OpCategory
from urlab_wire.ops import session

EDITOR, MANAGER, NEITHER = OpCategory.EDITOR_ONLY, OpCategory.MANAGER_REQUIRED, OpCategory.NO_MANAGER

SESSION_OPS = "hello meta"
OPS = {
    ("", MANAGER): "step reset",
    ("runtime", MANAGER): """
        forward set_mode set_paused set_sim_speed set_control_source set_twist set_qpos set_mocap_pose
        read_mocap_pose get_contacts list_keyframes configure_controller set_sim_options""",
    ("recording", MANAGER): "recording_start recording_stop recording_save recording_clear",
    ("replay", MANAGER): "replay_load replay_list_sessions replay_set_active replay_start replay_stop",
    ("scene", EDITOR): """
        import_xml create_level load_level save_level current_level ensure_manager spawn_actor spawn_grid
        spawn_light destroy_actor destroy_asset set_actor_transform duplicate_actor actor_hierarchy snapshot""",
    ("sim", EDITOR): "begin_pie stop_pie pie_status",
    ("outliner", EDITOR): """
        list_actors list_blueprints find_actors get_actor_bounds select_actor add_quick_convert
        remove_quick_convert""",
    ("debug", EDITOR): """
        draw_marker draw_line draw_box draw_arrow draw_axes clear_markers set_overlay_text""",
    ("viewport", EDITOR): "set_camera get_camera frame_actor set_viewport_mode track_actor untrack",
}
EXTENSIONS = {
    ("runtime", MANAGER): """
        perturb(body) release_perturbation() set_ui_controls(target) save_state() restore_state() list_states()
        delete_state(name) set_equality(name,active) set_model_params(changes) set_camera_mode(camera,mode)
        set_camera_streaming(cameras)""",
    ("batch", MANAGER): "batch_open(num) batch_step(batch_id) batch_reset(batch_id) batch_close(batch_id)",
    ("recording", MANAGER): "recording_status()",
    ("recording", NEITHER): """
        list_recordings() recording_export(path,format) export_status() export_cancel(export_id)""",
    ("replay", MANAGER): "replay_seek()",
    ("scene", EDITOR): "upload_asset(name,data) list_levels() undo() redo()",
    ("sim", EDITOR): "recent_log()",
    ("outliner", EDITOR): "blueprint_picture(blueprint_path)",
    ("debug", EDITOR): "set_overlay_choice(name)",
    ("viewport", EDITOR): """
        look_through(camera) set_viewport_overlays() read_view() editor_address() viewport_screenshot()""",
}
"""Ops of ours, with the fields that a request must have."""

LOOKING = """
    hello meta step read_mocap_pose get_contacts list_keyframes replay_list_sessions current_level
    actor_hierarchy snapshot pie_status list_actors list_blueprints find_actors get_actor_bounds get_camera"""
REFERENCE = {name for names in (SESSION_OPS, *OPS.values()) for name in names.split()}


def test_the_ops_of_the_reference_are_in_their_places() -> None:
    listed = {(name, *place) for place, names in OPS.items() for name in names.split()}
    listed |= {(name, "", NEITHER) for name in SESSION_OPS.split()}
    assert listed == {(one.name, one.namespace, one.category) for one in CATALOGUE.values() if one.name in REFERENCE}
    categories = [category for _, _, category in listed]
    assert (categories.count(MANAGER), categories.count(EDITOR)) == (24, 38)


def test_our_extensions_are_in_their_places_and_meta_tells_what_they_need() -> None:
    told: dict[tuple[str, OpCategory], set[str]] = {}
    for one in meta_ops():
        if one.name not in REFERENCE:
            needs = ",".join(one.required_fields or [])
            told.setdefault((one.namespace, one.category), set()).add(f"{one.name}({needs})")
    assert told == {place: set(ops.split()) for place, ops in EXTENSIONS.items()}


def test_meta_lists_every_op_but_hello_and_meta() -> None:
    names = [entry.name for entry in meta_ops()]
    assert names == [name for name in CATALOGUE if name not in SESSION_OPS.split()]


def test_an_observer_may_call_the_ops_that_only_look() -> None:
    assert {name for name in REFERENCE if CATALOGUE[name].reads} == set(LOOKING.split())


def test_an_op_is_found_by_name() -> None:
    assert CATALOGUE["step"] is CATALOGUE["step"]
    with pytest.raises(KeyError):
        CATALOGUE["no_such_op"]


def test_requests_and_replies_are_tagged_with_their_ops_and_say_what_they_are() -> None:
    for spec in CATALOGUE.values():
        request, reply = spec.request.__struct_config__, spec.reply.__struct_config__
        assert (request.tag_field, request.tag) == ("op", spec.name)
        assert (reply.tag_field, reply.tag) == ("op", spec.reply_op)
        assert spec.request.__doc__
        assert spec.reply.__doc__
        assert "session_id" not in spec.required_fields()


def test_a_request_names_its_own_reply() -> None:
    for spec in CATALOGUE.values():
        assert spec.reply.__name__.removesuffix("Reply") == spec.request.__name__.removesuffix("Request")


def test_every_op_has_a_time_limit_of_at_most_two_minutes() -> None:
    assert [spec.name for spec in CATALOGUE.values() if not 0 < spec.limit_s <= 120] == []


def test_the_meta_entry_is_that_of_the_op() -> None:
    for spec in CATALOGUE.values():
        assert spec.meta() == session.OpEntry(
            name=spec.name,
            category=str(spec.category),
            namespace=spec.namespace,
            required_fields=spec.required_fields() or None,
            reply_fields=spec.reply_fields(),
        )


def test_failure_codes_are_those_of_the_reference() -> None:
    failures = {name: str(CATALOGUE[name].failure) for name in REFERENCE if CATALOGUE[name].failure is not None}
    assert failures == {
        "import_xml": "import_failed", "create_level": "create_level_failed", "load_level": "load_level_failed",
        "save_level": "save_level_failed", "current_level": "no_world", "ensure_manager": "spawn_failed",
        "spawn_actor": "spawn_failed", "spawn_grid": "spawn_failed", "spawn_light": "spawn_failed",
        "destroy_actor": "destroy_failed", "destroy_asset": "destroy_asset_failed",
        "set_actor_transform": "set_actor_transform_failed", "duplicate_actor": "duplicate_failed",
        "actor_hierarchy": "actor_hierarchy_failed", "snapshot": "snapshot_failed",
        "list_actors": "list_actors_failed", "list_blueprints": "list_blueprints_failed",
        "find_actors": "find_actors_failed", "get_actor_bounds": "get_actor_bounds_failed",
        "select_actor": "select_failed", "add_quick_convert": "add_quick_convert_failed",
        "remove_quick_convert": "remove_quick_convert_failed",
    }  # fmt: skip
