"""The field lists of `meta` say at least what the original declares (and sends), and require nothing more."""

import msgpack
import pytest

from urlab_wire import CATALOGUE, encode
from urlab_wire.catalogue import meta_ops
from urlab_wire.ops.session import MetaReply

# op | required fields | reply fields besides op:string; a trailing ? marks what may be absent
DECLARED = """
step | | time:float step:int per_articulation:object sim_time:object? wall_time:object?
reset | | time:float step:int
forward | | time:float step:int per_articulation:object
set_mode | | previous_mode:string current_mode:string
set_paused | paused | paused:bool
configure_controller | articulation params | articulation:string params:object
set_sim_options | |
set_sim_speed | percent | percent:float
set_control_source | |
set_twist | |
set_qpos | target qpos | target:string actor_id:string? actor_name:string? qpos:array free_base_shortcut:bool
set_mocap_pose | body | body:string pos:array quat:array
read_mocap_pose | body | body:string pos:array quat:array
get_contacts | | n_contacts:int truncated:bool contacts:array
list_keyframes | | keyframes:array
recording_start | | name:string max_duration_s:float
recording_stop | | name:string frame_count:int sim_duration_s:float
recording_save | | absolute_path:string
recording_clear | |
replay_load | | name:string
replay_list_sessions | | sessions:array
replay_set_active | |
replay_start | | active_session:string total_frames:int
replay_stop | |
import_xml | path | blueprint_class_path:string blueprint_short_name:string imported_now:bool
create_level | name | level_path:string
load_level | level_path | level_path:string
save_level | | level_path:string
current_level | | level_path:string
ensure_manager | | actor_name:string actor_path:string was_existing:bool
destroy_asset | asset_path | asset_path:string was_found:bool
spawn_actor | blueprint | actor_id:string actor_name:string actor_path:string blueprint_class_path:string \
    location:array rotation_quat:array was_existing:bool requires_pie_restart:bool
spawn_grid | blueprint base_actor_id count_x count_y | count:int blueprint_class_path:string actors:array \
    requires_pie_restart:bool
spawn_light | | actor_id:string actor_name:string actor_path:string kind:string intensity:float color:array \
    location:array rotation_euler:array requires_pie_restart:bool
destroy_actor | target | requires_pie_restart:bool
set_actor_transform | target | target:string actor_name:string requires_pie_restart:bool
duplicate_actor | target new_actor_id | actor_id:string actor_name:string actor_path:string \
    blueprint_class_path:string
actor_hierarchy | target | root:object
snapshot | | actors:array in_pie:bool level_path:string
begin_pie | | state:string compile_error:string handshake_payload:object?
stop_pie | |
pie_status | | state:string compile_error:string sim_time:float?
list_actors | | actors:array in_pie:bool
list_blueprints | | blueprints:array
find_actors | | actors:array in_pie:bool
get_actor_bounds | target | actor_name:string min:array max:array center:array extents:array
select_actor | target | actor_name:string
add_quick_convert | target | actor_name:string static:bool complex_mesh:bool coacd_threshold:float \
    driven_by_unreal:bool requires_pie_restart:bool
remove_quick_convert | target | actor_name:string requires_pie_restart:bool
draw_marker | location color |
draw_line | from to color |
draw_box | center half_extents color |
draw_arrow | from to color |
draw_axes | location |
clear_markers | |
set_overlay_text | text |
set_camera | location | location:array rotation_quat:array rotation_euler:array fov:float
get_camera | | location:array rotation_quat:array rotation_euler:array fov:float
frame_actor | target | location:array rotation_quat:array rotation_euler:array fov:float
set_viewport_mode | mode | mode:string
track_actor | target | tracked_actor_path:string
untrack | | was_tracking:bool
"""

ROWS = [[cell.strip() for cell in row.split("|")] for row in DECLARED.strip().splitlines()]
TYPE_WORDS = {"string", "int", "float", "bool", "array", "object", "binary"}


def test_exactly_the_declared_fields_are_required() -> None:
    assert {name: CATALOGUE[name].required_fields() for name, _, _ in ROWS} == {
        name: required.split() for name, required, _ in ROWS
    }


@pytest.mark.parametrize(("name", "reply"), [(name, reply) for name, _, reply in ROWS], ids=[row[0] for row in ROWS])
def test_every_declared_reply_field_is_there(name: str, reply: str) -> None:
    ours = CATALOGUE[name].reply_fields()
    for field in ["op:string", *reply.split()]:
        assert field in ours or field.removesuffix("?") in ours


def test_reply_fields_are_name_type_and_perhaps_a_question_mark() -> None:
    for entry in meta_ops():
        for field in entry.reply_fields or []:
            name, word = field.removesuffix("?").split(":")
            assert name.isidentifier()
            assert word in TYPE_WORDS


def test_a_list_of_required_fields_that_is_empty_does_not_travel() -> None:
    reply = msgpack.unpackb(encode(MetaReply(ops=meta_ops())))
    entries = {entry["name"]: entry for entry in reply["ops"]}
    assert "required_fields" not in entries["step"]
    assert entries["import_xml"] == {
        "name": "import_xml",
        "category": "editor_only",
        "namespace": "scene",
        "required_fields": ["path"],
        "reply_fields": [
            "op:string", "blueprint_class_path:string", "blueprint_short_name:string", "imported_now:bool",
        ],
    }  # fmt: skip
