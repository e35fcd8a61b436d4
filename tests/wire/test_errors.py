from urlab_wire import ErrorCode

PROTOCOL_REFERENCE = """
    bad_request missing_op unknown_op not_in_editor no_active_manager session_expired missing_field not_ready
    bad_mode bad_value unknown_articulation unknown_body not_mocap_body unknown_keyframe dim_mismatch no_joints
    no_twist_controller no_controller controller_schema_violation mode_locked_by_server recording_already_active
    recording_not_active path_not_writable path_not_readable replay_session_not_found replay_requires_stepped
    step_timeout shutting_down"""
EDITOR_OPS = """
    wrong_transport import_failed create_level_failed load_level_failed save_level_failed no_world no_engine
    spawn_failed invalid_count too_many_cells destroy_failed destroy_asset_failed set_actor_transform_failed
    duplicate_failed actor_hierarchy_failed snapshot_failed list_actors_failed list_blueprints_failed
    find_actors_failed get_actor_bounds_failed select_failed add_quick_convert_failed remove_quick_convert_failed
    no_viewport unknown_actor no_bounds invalid_mode timeout"""
OURS = """
    reply_too_large observer_read_only physics_error internal_error not_allowed driver_busy rate_limited
    upload_failed undo_failed redo_failed blueprint_picture_failed"""


def test_the_codes_are_those_of_the_protocol_and_eleven_of_ours() -> None:
    assert {str(code) for code in ErrorCode} == {*PROTOCOL_REFERENCE.split(), *EDITOR_OPS.split(), *OURS.split()}


def test_no_code_is_there_twice() -> None:
    assert len(ErrorCode.__members__) == len(list(ErrorCode)) == len({str(code) for code in ErrorCode})


def test_a_code_is_its_name_in_lower_case() -> None:
    assert [code for code in ErrorCode if not code.value == str(code) == code.name.lower()] == []


def test_every_code_has_a_meaning_that_is_a_sentence() -> None:
    assert [code for code in ErrorCode if len(code.meaning.split()) < 4 or not code.meaning.endswith(".")] == []


def test_no_two_codes_mean_the_same() -> None:
    assert len({code.meaning for code in ErrorCode}) == len(list(ErrorCode))


def test_a_code_is_found_by_its_word() -> None:
    assert ErrorCode("step_timeout") is ErrorCode.STEP_TIMEOUT
