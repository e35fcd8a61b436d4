"""The audit log as a file."""

import json
import stat
from pathlib import Path

import pytest

from urlab.access import AuditLog, audit


def test_each_event_is_a_line_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "Saved" / "audit.jsonl"
    log = AuditLog(path)
    log.record("hello", "ada", "192.0.2.7", session="driver")
    log.record("wrote", "ada", path="x" * 10_000)
    first, second = map(json.loads, path.read_text().splitlines())
    assert {key: first[key] for key in ("event", "caller", "address", "session")} == {
        "event": "hello", "caller": "ada", "address": "192.0.2.7", "session": "driver",
    }  # fmt: skip
    assert "address" not in second
    assert len(second["path"]) < 600
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_log_is_kept_once_and_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MAX_BYTES", 1000)
    path = tmp_path / "audit.jsonl"
    for number in range(100):
        AuditLog(path).record("hello", f"caller {number}")
    kept = path.with_name("audit.jsonl.1")
    assert {one.name for one in tmp_path.iterdir()} <= {path.name, kept.name}
    assert 1000 <= kept.stat().st_size < 1200


def test_a_log_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    log = AuditLog(tmp_path / "file" / "audit.jsonl")
    for _ in range(3):
        log.record("hello", "ada")
    assert len([text for text in caplog.messages if "cannot be written" in text]) == 1


def test_a_link_in_its_place_is_not_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    (tmp_path / "audit.jsonl").symlink_to(target)
    AuditLog(tmp_path / "audit.jsonl").record("hello", "ada")
    assert target.read_text() == "mine"
    assert "cannot be written" in caplog.text
