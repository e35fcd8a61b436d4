"""The namespaces of the asyncio client, each with the methods of the plain one, awaited."""

from pathlib import Path

from urlab_client.awaited.part import AsyncPart, AwaitedValue, awaited
from urlab_client.namespaces.debug import DebugNamespace
from urlab_client.namespaces.outliner import OutlinerNamespace
from urlab_client.namespaces.recording import URLabRecordingAPI
from urlab_client.namespaces.replay import URLabReplayAPI
from urlab_client.namespaces.runtime import RuntimeNamespace
from urlab_client.namespaces.scene import SceneNamespace
from urlab_client.namespaces.sim import SimNamespace
from urlab_client.namespaces.viewport import ViewportNamespace


class AsyncScene(AsyncPart[SceneNamespace]):
    """``client.scene``: the methods of `SceneNamespace`, awaited."""

    create_level = awaited(SceneNamespace.create_level)
    load_level = awaited(SceneNamespace.load_level)
    save_level = awaited(SceneNamespace.save_level)
    list_levels = awaited(SceneNamespace.list_levels)
    current_level = awaited(SceneNamespace.current_level)
    level_status = awaited(SceneNamespace.level_status)
    undo = awaited(SceneNamespace.undo)
    redo = awaited(SceneNamespace.redo)
    upload = awaited(SceneNamespace.upload)
    ensure_manager = awaited(SceneNamespace.ensure_manager)
    import_xml = awaited(SceneNamespace.import_xml)
    destroy_asset = awaited(SceneNamespace.destroy_asset)
    spawn_actor = awaited(SceneNamespace.spawn_actor)
    spawn_grid = awaited(SceneNamespace.spawn_grid)
    spawn_light = awaited(SceneNamespace.spawn_light)
    destroy_actor = awaited(SceneNamespace.destroy_actor)
    set_actor_transform = awaited(SceneNamespace.set_actor_transform)
    duplicate_actor = awaited(SceneNamespace.duplicate_actor)
    actor_hierarchy = awaited(SceneNamespace.actor_hierarchy)
    snapshot = awaited(SceneNamespace.snapshot)
    apply_scene = awaited(SceneNamespace.apply_scene)


class AsyncSim(AsyncPart[SimNamespace]):
    """``client.sim``: the methods of `SimNamespace`, awaited."""

    start = awaited(SimNamespace.start)
    stop = awaited(SimNamespace.stop)
    status = awaited(SimNamespace.status)
    recent_log = awaited(SimNamespace.recent_log)


class AsyncRuntime(AsyncPart[RuntimeNamespace]):
    """``client.runtime``: the methods of `RuntimeNamespace`, awaited."""

    set_paused = awaited(RuntimeNamespace.set_paused)
    set_sim_speed = awaited(RuntimeNamespace.set_sim_speed)
    set_control_source = awaited(RuntimeNamespace.set_control_source)
    set_twist = awaited(RuntimeNamespace.set_twist)
    set_qpos = awaited(RuntimeNamespace.set_qpos)
    set_mocap_pose = awaited(RuntimeNamespace.set_mocap_pose)
    read_mocap_pose = awaited(RuntimeNamespace.read_mocap_pose)
    get_contacts = awaited(RuntimeNamespace.get_contacts)
    list_keyframes = awaited(RuntimeNamespace.list_keyframes)
    set_sim_options = awaited(RuntimeNamespace.set_sim_options)
    set_mode = awaited(RuntimeNamespace.set_mode)
    set_camera_mode = awaited(RuntimeNamespace.set_camera_mode)
    set_camera_streaming = awaited(RuntimeNamespace.set_camera_streaming)
    forward = awaited(RuntimeNamespace.forward)
    perturb = awaited(RuntimeNamespace.perturb)
    release = awaited(RuntimeNamespace.release)
    set_ui_controls = awaited(RuntimeNamespace.set_ui_controls)
    save_state = awaited(RuntimeNamespace.save_state)
    restore_state = awaited(RuntimeNamespace.restore_state)
    list_states = awaited(RuntimeNamespace.list_states)
    delete_state = awaited(RuntimeNamespace.delete_state)
    set_equality = awaited(RuntimeNamespace.set_equality)
    set_model_params = awaited(RuntimeNamespace.set_model_params)


class AsyncOutliner(AsyncPart[OutlinerNamespace]):
    """``client.outliner``: the methods of `OutlinerNamespace`, awaited."""

    list_actors = awaited(OutlinerNamespace.list_actors)
    list_blueprints = awaited(OutlinerNamespace.list_blueprints)
    blueprint_picture = awaited(OutlinerNamespace.blueprint_picture)
    find_actors = awaited(OutlinerNamespace.find_actors)
    get_actor_bounds = awaited(OutlinerNamespace.get_actor_bounds)
    select_actor = awaited(OutlinerNamespace.select_actor)
    add_quick_convert = awaited(OutlinerNamespace.add_quick_convert)
    remove_quick_convert = awaited(OutlinerNamespace.remove_quick_convert)


class AsyncDebug(AsyncPart[DebugNamespace]):
    """``client.debug``: the methods of `DebugNamespace`, awaited."""

    draw_marker = awaited(DebugNamespace.draw_marker)
    draw_line = awaited(DebugNamespace.draw_line)
    draw_box = awaited(DebugNamespace.draw_box)
    draw_arrow = awaited(DebugNamespace.draw_arrow)
    draw_axes = awaited(DebugNamespace.draw_axes)
    clear_markers = awaited(DebugNamespace.clear_markers)
    set_overlay_text = awaited(DebugNamespace.set_overlay_text)
    set_overlay_choice = awaited(DebugNamespace.set_overlay_choice)


class AsyncViewport(AsyncPart[ViewportNamespace]):
    """``client.viewport``: the methods of `ViewportNamespace`, awaited."""

    set_camera = awaited(ViewportNamespace.set_camera)
    get_camera = awaited(ViewportNamespace.get_camera)
    look_through = awaited(ViewportNamespace.look_through)
    set_overlays = awaited(ViewportNamespace.set_overlays)
    frame_actor = awaited(ViewportNamespace.frame_actor)
    set_mode = awaited(ViewportNamespace.set_mode)
    track_actor = awaited(ViewportNamespace.track_actor)
    untrack = awaited(ViewportNamespace.untrack)
    read = awaited(ViewportNamespace.read)
    editor_url = awaited(ViewportNamespace.editor_url)
    screenshot = awaited(ViewportNamespace.screenshot)


class AsyncRecording(AsyncPart[URLabRecordingAPI]):
    """``client.recording``: the methods of `URLabRecordingAPI`, awaited."""

    start = awaited(URLabRecordingAPI.start)
    stop = awaited(URLabRecordingAPI.stop)
    save = awaited(URLabRecordingAPI.save)
    clear = awaited(URLabRecordingAPI.clear)
    status = awaited(URLabRecordingAPI.status)
    list = awaited(URLabRecordingAPI.list)
    export = awaited(URLabRecordingAPI.export)
    export_status = awaited(URLabRecordingAPI.export_status)
    cancel_export = awaited(URLabRecordingAPI.cancel_export)

    @property
    def is_active(self) -> AwaitedValue[bool]:
        """See `URLabRecordingAPI.is_active`; awaited."""
        return self._property("is_active")

    @property
    def frame_count(self) -> AwaitedValue[int]:
        """See `URLabRecordingAPI.frame_count`; awaited."""
        return self._property("frame_count")

    @property
    def sim_duration(self) -> AwaitedValue[float]:
        """See `URLabRecordingAPI.sim_duration`; awaited."""
        return self._property("sim_duration")

    @property
    def last_saved_path(self) -> AwaitedValue[Path | None]:
        """See `URLabRecordingAPI.last_saved_path`; awaited."""
        return self._property("last_saved_path")


class AsyncReplay(AsyncPart[URLabReplayAPI]):
    """``client.replay``: the methods of `URLabReplayAPI`, awaited."""

    load = awaited(URLabReplayAPI.load)
    list_sessions = awaited(URLabReplayAPI.list_sessions)
    set_active = awaited(URLabReplayAPI.set_active)
    start = awaited(URLabReplayAPI.start)
    seek = awaited(URLabReplayAPI.seek)
    status = awaited(URLabReplayAPI.status)
    stop = awaited(URLabReplayAPI.stop)
    play = awaited(URLabReplayAPI.play)

    @property
    def active_session(self) -> AwaitedValue[str | None]:
        """See `URLabReplayAPI.active_session`; awaited."""
        return self._property("active_session")
