import resource
from pathlib import Path
from typing import Any

import pytest

import urlab
from urlab_client import (
    ExportState,
    ExportStatus,
    RecordingHandle,
    RecordingInfo,
    RecordingStatus,
    RecordingSummary,
    URLabClient,
    URLabRPCError,
)


def test_a_recording_is_begun_stopped_and_saved(client: URLabClient, server: Any):
    server.replies |= {
        "recording_start": {"name": "ep_1", "max_duration_s": 60.0},
        "recording_stop": {"name": "ep_1", "frame_count": 100, "sim_duration_s": 1.0},
        "recording_save": {"absolute_path": "/data/ep_1.json"},
    }
    assert client.recording.start("ep_1") == RecordingHandle("ep_1", 60.0)
    assert client.recording.is_active
    assert client.recording.stop() == RecordingSummary(100, 1.0)
    assert not client.recording.is_active
    assert (client.recording.frame_count, client.recording.sim_duration) == (100, 1.0)
    assert client.recording.save(Path("ep_1.json")) == Path("/data/ep_1.json")
    assert server.last("recording_save")["path"] == "ep_1.json"
    assert client.recording.last_saved_path == Path("/data/ep_1.json")
    client.recording.clear()
    assert client.recording.frame_count == 0


def test_clearing_does_not_end_a_recording(client: URLabClient):
    client.recording.start()
    client.recording.clear()
    assert client.recording.is_active


def test_saving_without_a_path_leaves_the_name_to_the_server(client: URLabClient, server: Any):
    client.recording.save()
    assert "path" not in server.last("recording_save")


def test_the_properties_count_while_a_recording_runs(tmp_path: Path):
    with urlab.launch("box", project=tmp_path) as client:
        recording, timestep = client.recording, client.model.opt.timestep
        assert (recording.is_active, recording.frame_count, recording.sim_duration) == (False, 0, 0.0)
        recording.start("ep_1")
        client.step(7)
        assert (recording.is_active, recording.frame_count, recording.sim_duration) == (True, 7, 7 * timestep)
        assert recording.status() == RecordingStatus(True, "ep_1", 7, 7 * timestep)
        assert recording.stop() == RecordingSummary(7, 7 * timestep)
        assert (recording.is_active, recording.frame_count) == (False, 7)
        recording.start()
        client.sim.stop()
        assert not recording.is_active
    assert not recording.is_active, "of a closed client"


def test_a_file_that_does_not_have_every_frame_is_told_of(tmp_path: Path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with urlab.launch("box", project=tmp_path) as client:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            with pytest.raises(URLabRPCError, match="File too large"):
                client.recording.start("ep", path="ep.mcap")
            assert not client.recording.status().active
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        client.recording.start("ep", path="ep.mcap")
        (file,) = tmp_path.rglob("ep.mcap")
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size, before[1]))
        try:
            client.step(50)
            stopped = client.recording.stop()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert stopped.frame_count == 50
        (warning,) = stopped.warnings
        assert "ep.mcap does not have every frame: File too large; recording_save writes" in warning
        assert client.recording.save().exists()


def test_saved_recordings_are_listed(client: URLabClient, server: Any):
    block = {"name": "day/ep.json", "size_bytes": 10, "written": 5.5, "format": "json", "frame_count": 3}
    server.replies["list_recordings"] = {"folder": "/data", "recordings": [block], "truncated": False}
    assert client.recording.list() == [RecordingInfo("day/ep.json", 10, 5.5, "json", frame_count=3)]


def export_reply(state: str, **more: Any) -> dict[str, Any]:
    block = {
        "export_id": "export-1", "state": state, "format": "mp4", "recording": "ep.json",
        "absolute_path": "/data/ep.mp4", "done": 1, "total": 2, **more,
    }  # fmt: skip
    return {"exports": [block]}


@pytest.fixture
def exporting(client: URLabClient, server: Any) -> Any:
    """A client of a server on which an export runs, then is as the test says."""
    server.replies["recording_export"] = {"export_id": "export-1", "absolute_path": "/data/ep.mp4", "total": 2}
    server.replies["export_cancel"] = {"was_running": True}

    def ends(state: str, **more: Any) -> URLabClient:
        answers = iter([export_reply("running"), export_reply(state, **more)])
        server.replies["export_status"] = lambda _: next(answers)
        return client

    return ends


def test_an_export_is_waited_for_and_its_progress_told(exporting: Any, server: Any):
    told: list[ExportStatus] = []
    done = exporting("done", done=2).recording.export(
        "ep.json", "ep.mp4", camera="eye", start=0.5, progress=told.append
    )
    assert (done.state, done.path, done.done) == (ExportState.DONE, Path("/data/ep.mp4"), 2)
    assert [(one.state.value, one.done) for one in told] == [("waiting", 0), ("running", 1), ("done", 2)]
    sent = server.last("recording_export")
    assert (sent["path"], sent["out"], sent["camera"], sent["from"], "to" in sent) == (
        "ep.json", "ep.mp4", "eye", 0.5, False,
    )  # fmt: skip


def test_an_export_that_fails_raises_the_reason(exporting: Any):
    with pytest.raises(URLabRPCError, match="no GL here") as failed:
        exporting("failed", code="no_viewport", message="no GL here").recording.export("ep.json")
    assert failed.value.code == "no_viewport"
    with pytest.raises(URLabRPCError, match="export-1 was cancelled") as cancelled:
        exporting("cancelled").recording.export("ep.json")
    assert cancelled.value.code == "cancelled"


def test_an_export_that_is_interrupted_is_cancelled(exporting: Any, server: Any):
    def interrupt(status: ExportStatus) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exporting("done").recording.export("ep.json", progress=interrupt)
    assert server.last("export_cancel")["export_id"] == "export-1"


def test_an_export_need_not_be_waited_for(exporting: Any, server: Any):
    client = exporting("done")
    begun = client.recording.export("ep.json", wait=False)
    assert (begun.export_id, begun.state, begun.is_unfinished) == ("export-1", ExportState.WAITING, True)
    assert "export_status" not in server.ops()
    assert [one.state for one in client.recording.export_status("export-1")] == [ExportState.RUNNING]
    assert client.recording.cancel_export("export-1")


def test_a_client_makes_a_film(tmp_path: Path):
    with urlab.launch("box", project=tmp_path) as client:
        client.recording.start("drop")
        client.step(100)
        client.recording.stop()
        client.recording.save()
        (listed,) = client.recording.list()
        assert (listed.name, listed.frame_count, listed.problem) == ("drop.json", 100, None)
        film = client.recording.export(listed.name, tmp_path / "film.mp4", width=64, height=48, fps=20)
        assert (film.path, film.total, film.warnings) == (tmp_path / "film.mp4", 4, [])
        assert film.path.read_bytes()[4:8] == b"ftyp"
        asked = [one for one in client.sim.recent_log() if one.op]  # other threads may warn
        assert [one.op for one in asked[-3:]] == ["recording_stop", "recording_save", "recording_export"]
        assert [one.op for one in client.sim.recent_log(after=asked[-1].number) if one.op] == []
