"""The newest records of the log, and how many of a kind are kept."""

import logging
from collections.abc import Iterator

import pytest

from urlab.monitoring.log_buffer import MAX_RECORDS, KindLimit, LogBuffer

log = logging.getLogger("urlab.test")


@pytest.fixture
def buffer(caplog: pytest.LogCaptureFixture) -> Iterator[LogBuffer]:
    caplog.set_level(logging.INFO, "urlab")
    buffer = LogBuffer()
    buffer.attach()
    yield buffer
    buffer.detach()


def messages(buffer: LogBuffer, after: int = 0) -> list[str]:
    return [one.message for one in buffer.after(after)[0]]


def test_records_are_numbered_and_told_behind_a_number(buffer: LogBuffer) -> None:
    for word in ("one", "two", "three"):
        log.warning("number %s", word)
    records, last = buffer.after(0)
    assert [(one.number, one.level, one.logger, one.message) for one in records] == [
        (1, "warning", "urlab.test", "number one"),
        (2, "warning", "urlab.test", "number two"),
        (3, "warning", "urlab.test", "number three"),
    ]
    assert last == 3
    assert messages(buffer, 2) == ["number three"]
    assert buffer.after(3) == ([], 3)


def test_a_number_from_before_a_restart_gets_everything(buffer: LogBuffer) -> None:
    log.info("fresh")
    assert messages(buffer, 1000) == ["fresh"]


def test_the_oldest_records_make_room(buffer: LogBuffer) -> None:
    for number in range(MAX_RECORDS + 5):
        log.info(f"kind {number}")
    records, last = buffer.after(0)
    assert (len(records), records[0].number, last) == (MAX_RECORDS, 6, MAX_RECORDS + 5)


def test_an_exception_is_told_in_short_and_a_long_message_is_cut(buffer: LogBuffer) -> None:
    try:
        raise ValueError("the reason")
    except ValueError:
        log.exception("it failed")
    log.info("x" * 5000)
    failed, long = messages(buffer)
    assert failed == "it failed (ValueError: the reason)"
    assert long == "x" * 1000 + "..."


def test_a_record_that_cannot_be_formatted_is_kept_as_it_is() -> None:
    buffer = LogBuffer()
    buffer.emit(logging.LogRecord("urlab.test", logging.INFO, "", 0, "%d things", ("many",), None))
    assert messages(buffer) == ["%d things"]


def test_ops_are_kept_with_who_asked_and_what_became_of_it(buffer: LogBuffer) -> None:
    buffer.note_op("reset", "local user", "driver")
    buffer.note_op("set_qpos", "ada", "operator", "bad_value", "qpos must be finite")
    good, bad = buffer.after(0)[0]
    assert (good.level, good.message, good.caller, good.session, good.op, good.code) == (
        "info", "reset", "local user", "driver", "reset", None,
    )  # fmt: skip
    assert (bad.level, bad.message, bad.caller, bad.session, bad.op, bad.code) == (
        "warning", "set_qpos: qpos must be finite [bad_value]", "ada", "operator", "set_qpos", "bad_value",
    )  # fmt: skip


def test_what_repeats_is_kept_back_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("urlab.monitoring.log_buffer.time.monotonic", lambda: now)
    buffer = LogBuffer()
    for _ in range(80):
        buffer.note_op("perturb", "ada", "operator")
    buffer.note_op("reset", "ada", "operator")
    assert messages(buffer) == ["perturb"] * 10 + ["reset"]
    now += 11
    buffer.note_op("perturb", "ada", "operator")
    assert messages(buffer, 11) == ["perturb (70 more such lines were kept back)"]


def test_the_limit_does_not_grow_with_the_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = KindLimit()
    for kind in range(5000):
        assert limit.admit(kind) == 0
    assert len(limit._counts) <= 1001


def test_a_program_without_a_log_still_gets_its_warnings_on_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.getLogger("urlab"), "handlers", [])
    first, second = LogBuffer(), LogBuffer()
    first.attach()
    second.attach()
    log.warning("look out")
    log.info("nothing")
    assert capsys.readouterr().err == "look out\n"
    shown = logging.NullHandler()
    logging.getLogger("urlab").addHandler(shown)
    log.warning("shown elsewhere")
    assert capsys.readouterr().err == ""
