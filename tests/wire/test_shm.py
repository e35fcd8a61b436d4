"""Regions of shared memory, against the layout that the protocol documents and against a second process."""

import mmap
import struct
import subprocess
import sys
import time
import zlib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from urlab_wire import shm
from urlab_wire.shm import PayloadTooLarge, Region, ShmError

PEER = Path(__file__).with_name("shm_peer.py")
HEADER = "<4sIIIQI36s"


def empty(stride: int = 32, n_buffers: int = 2) -> bytearray:
    buffer = bytearray(b"\xaa" * shm.region_bytes(stride, n_buffers))
    shm.format_region(buffer, stride, n_buffers)
    return buffer


def header(buffer: bytearray) -> tuple[bytes | int, ...]:
    return struct.unpack_from(HEADER, buffer)


# -- layout -------------------------------------------------------------------------------------------------------


def test_numbers_and_files_are_those_of_the_protocol() -> None:
    assert struct.pack("<I", shm.MAGIC) == b"URLB"
    assert struct.calcsize(HEADER) == shm.HEADER_BYTES
    assert (shm.VERSION, shm.RPC_BUFFERS, shm.STREAM_BUFFERS) == (1, 2, 4)
    assert (shm.RPC_STRIDE, shm.STATE_STRIDE) == (1048576, 16384)
    assert (shm.REQUEST_FILE, shm.REPLY_FILE, shm.STATE_FILE) == ("req.shm", "rep.shm", "state.shm")
    assert shm.region_bytes(1048576, 2) == 64 + 2 * 1048576


def test_a_new_region_has_a_header_and_empty_slots() -> None:
    buffer = empty(stride=24, n_buffers=3)
    assert header(buffer) == (b"URLB", 1, 24, 3, 0, 0, bytes(36))
    assert [struct.unpack_from("<I", buffer, 64 + slot * 24) for slot in range(3)] == [(0,)] * 3


def test_a_region_that_is_formatted_again_has_forgotten_everything() -> None:
    buffer = empty()
    Region(buffer).write(b"old")
    shm.format_region(buffer, 32, 2)
    assert header(buffer) == (b"URLB", 1, 32, 2, 0, 0, bytes(36))
    assert Region(buffer).read(99) is None


def test_writes_go_round_the_slots_and_nowhere_else() -> None:
    buffer = empty(stride=13, n_buffers=3)
    before, region = bytes(buffer), Region(buffer)
    assert [region.write(payload) for payload in (b"first", b"second", b"third", b"4")] == [1, 2, 3, 4]
    expected = bytearray(before)
    struct.pack_into("<QI", expected, 16, 4, 1)
    for slot, text in ((1, b"first"), (2, b"second"), (0, b"third"), (1, b"4")):
        struct.pack_into(f"<I{len(text)}s", expected, 64 + slot * 13, len(text), text)
    assert buffer == expected


def test_a_region_with_one_slot_uses_it_every_time() -> None:
    region = Region(empty(n_buffers=1))
    assert [region.write(b"a"), region.write(b"bc")] == [1, 2]
    assert region.read(0) == (2, b"bc")


def test_a_region_tells_its_shape() -> None:
    region = Region(empty(stride=32, n_buffers=4))
    assert (region.stride, region.n_buffers, region.capacity, region.sequence) == (32, 4, 28, 0)


def test_bytes_behind_the_last_slot_are_no_matter() -> None:
    assert Region(empty() + bytes(4096)).n_buffers == 2


# -- what is refused ----------------------------------------------------------------------------------------------


def with_header(**changes: int) -> bytearray:
    buffer = empty()
    places = {"magic": 0, "version": 4, "stride": 8, "n_buffers": 12}
    for field, value in changes.items():
        struct.pack_into("<I", buffer, places[field], value)
    return buffer


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (bytearray(63), "a buffer of 63 bytes is no region: the header alone has 64"),
        (bytearray(128), "begins with 0x00000000, not 0x424c5255: no region, or not yet finished"),
        (with_header(version=2), "has protocol version 2, this side speaks version 1"),
        (with_header(n_buffers=0), "a region of 0 slots cannot be"),
        (with_header(stride=4), "a stride of 4 bytes cannot be"),
        (with_header(stride=33), "2 slots of 33 bytes need 130 bytes, the buffer has 128"),
        (with_header(n_buffers=0xFFFFFFFF, stride=0xFFFFFFFF), "the buffer has 128"),
        (memoryview(bytearray(136))[1:], "which is no multiple of 8"),
    ],
)
def test_what_is_no_region_is_refused(buffer: bytearray, message: str) -> None:
    with pytest.raises(ShmError, match=message):
        Region(buffer)


@pytest.mark.parametrize(("stride", "n_buffers"), [(4, 2), (32, 0), (33, 2), (32, -1), (1 << 32, 1)])
def test_a_shape_that_cannot_be_is_not_written(stride: int, n_buffers: int) -> None:
    buffer = bytearray(128)
    with pytest.raises(ShmError):
        shm.format_region(buffer, stride, n_buffers)
    assert buffer == bytes(128)


def test_the_magic_number_is_written_last(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer, seen = empty(), []
    monkeypatch.setattr(shm, "_fence", lambda: seen.append(header(buffer)[:4]))
    shm.format_region(buffer, 16, 4)
    assert seen == [(bytes(4), 1, 32, 2), (bytes(4), 1, 16, 4)]
    assert header(buffer)[0] == b"URLB"


@pytest.mark.parametrize("payload", [b"x" * 29, memoryview(bytes(30)), bytearray(1 << 20)])
def test_a_payload_that_is_too_large_changes_nothing(payload: shm.Buffer) -> None:
    buffer = empty(stride=32)
    before, region = bytes(buffer), Region(buffer)
    with pytest.raises(PayloadTooLarge, match=rf"of {len(payload)} bytes does not fit a slot, which holds 28"):
        region.write(payload)
    assert buffer == before


def test_an_empty_payload_is_refused() -> None:
    with pytest.raises(ShmError, match="empty payload"):
        Region(empty()).write(b"")


def test_what_is_open_for_reading_is_not_written() -> None:
    buffer = empty()
    Region(buffer).write(b"hello")
    reader = Region(memoryview(buffer).toreadonly())
    assert reader.read(0) == (1, b"hello")
    with pytest.raises(ShmError, match="open for reading only"):
        reader.write(b"no")
    assert reader.read(0) == (1, b"hello")


# -- reading ------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(min_size=1, max_size=28), min_size=1, max_size=9), st.integers(1, 5))
def test_every_payload_comes_back_in_turns(payloads: list[bytes], n_buffers: int) -> None:
    buffer = empty(n_buffers=n_buffers)
    writer, reader, seen = Region(buffer), Region(buffer), 0
    for number, payload in enumerate(payloads, 1):
        assert writer.write(payload) == number == reader.sequence
        assert reader.read(seen) == (number, payload)
        seen = number
        assert reader.read(seen) is None


def test_a_picture_of_many_dimensions_is_sent_as_its_bytes() -> None:
    region = Region(empty())
    region.write(memoryview(bytes(range(24))).cast("B", (2, 3, 4)))
    assert region.read(0) == (1, bytes(range(24)))


def test_a_writer_that_started_again_is_read_although_it_counts_less() -> None:
    buffer = empty()
    region = Region(buffer)
    region.write(b"again")
    assert region.read(5000) == (1, b"again")


def test_the_sequence_goes_round() -> None:
    buffer = empty()
    struct.pack_into("<Q", buffer, 16, 2**64 - 1)
    region = Region(buffer)
    assert region.write(b"first of all") == 0
    assert region.read(2**64 - 1) == (0, b"first of all")


@pytest.mark.parametrize("size", [0, 29, 0xFFFFFFFF])
def test_a_slot_with_a_size_that_cannot_be_is_skipped(size: int) -> None:
    buffer = empty(stride=32)
    region = Region(buffer)
    region.write(b"good")
    struct.pack_into("<I", buffer, 64 + 32, size)
    assert region.read(0) is None


def test_an_index_outside_the_region_is_skipped() -> None:
    buffer = empty(n_buffers=2)
    region = Region(buffer)
    region.write(b"good")
    struct.pack_into("<I", buffer, 24, 2)
    assert region.read(0) is None


class Meddling:
    """Stands in for the view of the sequence: between two looks of a reader, a writer comes by."""

    def __init__(self, region: Region, writes: int) -> None:
        self._view, self._writer, self._writes = region._sequences, Region(region._whole), writes

    def __getitem__(self, place: int) -> int:
        value = int(self._view[place])
        for _ in range(self._writes):
            self._writer.write(b"another")
        self._writes = 0
        return value


@pytest.mark.parametrize(("n_buffers", "allowed"), [(1, 0), (2, 0), (3, 1), (4, 2), (8, 6)])
def test_a_copy_counts_only_if_the_writer_cannot_have_come_round(n_buffers: int, allowed: int) -> None:
    for writes in range(n_buffers + 2):
        region = Region(empty(n_buffers=n_buffers))
        region.write(b"one")
        region._sequences = Meddling(region, writes)  # type: ignore[assignment]
        assert (region.read(0) is not None) == (writes <= allowed), writes


def test_a_peer_that_spoils_the_header_leads_no_reader_astray() -> None:
    buffer = empty()
    region = Region(buffer)
    region.write(b"good")
    struct.pack_into("<4I", buffer, 0, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF)
    assert region.read(0) == (1, b"good")
    assert region.write(b"still good") == 2


# -- numbers ------------------------------------------------------------------------------------------------------


def test_a_numbered_request_is_what_every_reader_sees_and_its_number_is_told() -> None:
    buffer = empty()
    writer, reader = Region(buffer), Region(buffer)
    assert writer.write_request(b"step", 7 << 32) == 1
    assert reader.read(0) == (1, b"step")
    assert reader.read_request(0) == (1, b"step", 7 << 32)
    assert struct.unpack_from("<QI", buffer, 32) == (7 << 32, zlib.crc32(b"step", 7))


@pytest.mark.parametrize("place", [32, 36, 40, 43, 64 + 32 + 4, 64 + 32 + 7])
def test_a_request_that_was_damaged_has_no_number(place: int) -> None:
    buffer = empty()
    region = Region(buffer)
    region.write_request(b"step", (7 << 32) + 1)
    buffer[place] ^= 0x10
    found = region.read_request(0)
    assert found is not None
    assert found[2] is None


def test_the_request_before_is_not_taken_for_the_one_that_was_numbered_last() -> None:
    buffer = empty()
    region = Region(buffer)
    for number, request in ((1, b"first"), (2, b"other")):
        region.write_request(request, number)
    struct.pack_into("<QI", buffer, 16, 3, 1)
    assert region.read_request(2) == (3, b"first", None)


def test_a_peer_that_knows_no_numbers_has_none() -> None:
    buffer = empty()
    region = Region(buffer)
    region.write_request(b"ours", 5)
    region.write(b"theirs")
    assert region.read_request(1) == (2, b"theirs", None)


def test_a_numbered_reply_is_found_by_its_number_alone() -> None:
    region = Region(empty())
    assert region.write(b"reply", 9) == 1
    assert region.number == 9
    assert region.read(0, 9) == (1, b"reply")
    assert region.read(0, 8) is None
    assert region.read(1, 9) is None


def test_a_numbered_reply_has_eight_bytes_less_room() -> None:
    region = Region(empty(stride=32))
    region.write(b"x" * 20, 1)
    with pytest.raises(PayloadTooLarge, match=r"of 21 bytes does not fit a slot, which holds 20"):
        region.write(b"x" * 21, 1)


def test_a_header_that_a_peer_wrote_over_can_be_restored() -> None:
    buffer = empty()
    region = Region(buffer)
    region.write(b"one")
    buffer[:16] = b"\xff" * 16
    region.restore()
    assert Region(buffer).read(0) == (1, b"one")


def test_what_was_cleared_is_shown_no_more() -> None:
    buffer = empty()
    region = Region(buffer)
    for number in (1, 2):
        region.write_request(b"request", number)
    region.clear()
    for index in (0, 1):
        struct.pack_into("<QI", buffer, 16, 9, index)
        assert region.read_request(2) is None


# -- letting go ---------------------------------------------------------------------------------------------------


def test_a_mapping_can_be_closed_once_the_region_is_released() -> None:
    mapping = mmap.mmap(-1, 4096)
    shm.format_region(mapping, 64, 4)
    region = Region(mapping)
    region.write(memoryview(b"something"))
    region.read(0)
    with pytest.raises(BufferError):
        mapping.close()
    region.release()
    region.release()
    mapping.close()
    assert region.address == 0


def test_a_mapping_can_be_closed_where_its_refusal_is_caught() -> None:
    mapping = mmap.mmap(-1, 4096)
    try:
        Region(mapping)
    except ShmError:
        mapping.close()
    assert mapping.closed


# -- two processes ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="the folder of a test is removed while a mapping is open")
@pytest.mark.parametrize(("n_buffers", "at_least"), [(2, 20), (4, 300)])
def test_a_reader_never_believes_a_torn_payload(tmp_path: Path, n_buffers: int, at_least: int) -> None:
    path, stride = tmp_path / "hammer.shm", 1 << 16
    path.write_bytes(bytes(shm.region_bytes(stride, n_buffers)))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        shm.format_region(mapping, stride, n_buffers)
        region = Region(mapping)
        with subprocess.Popen([sys.executable, PEER, "hammer", tmp_path, "30"]) as child:
            accepted = read_until(region, at_least, child)
            child.kill()
        region.release()
    assert len(accepted) >= at_least
    assert all(before < after for before, after in pairwise(accepted))


def read_until(region: Region, at_least: int, child: subprocess.Popen[bytes]) -> list[int]:
    """The sequences of all payloads that were accepted, of a second or as many as that; each must be whole."""
    accepted: list[int] = []
    seen, begin = 0, time.monotonic()
    while child.poll() is None and (len(accepted) < at_least or time.monotonic() - begin < 1):
        for _ in range(100):
            if (got := region.read(seen)) is not None:
                seen, payload = got
                accepted.append(seen)
                assert struct.unpack_from("<I", payload) == (zlib.crc32(memoryview(payload)[4:]),)
    return accepted


# -- files of cameras ---------------------------------------------------------------------------------------------

prefixes = st.text(st.sampled_from("abgloAZ09.-"), min_size=1, max_size=8) | st.just("global")


def test_camera_files_are_named_as_the_protocol_has_it() -> None:
    assert shm.camera_file("unitree_go2", "head_camera") == "cam_unitree_go2_head_camera.shm"
    assert shm.camera_meta_file("unitree_go2", "head_camera") == "cammeta_unitree_go2_head_camera.shm"
    assert shm.camera_file("", "table_eye") == "cam_global_table_eye.shm"
    assert shm.camera_file("arm-2", "Auge links é") == "cam_arm-2_Auge links é.shm"


def test_a_robot_called_global_is_not_the_scene() -> None:
    assert shm.camera_file("global", "eye") == "cam_%67lobal_eye.shm"
    assert shm.camera_file("global_arm", "eye") == "cam_%67lobal_arm_eye.shm"
    assert shm.camera_file("globals", "eye") == "cam_globals_eye.shm"


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("../../etc/passwd", "..%2F..%2Fetc%2Fpasswd"),
        ("a\\b:c", "a%5Cb%3Ac"),
        ("nul\0byte", "nul%00byte"),
        ("100%", "100%25"),
        ("lone\ud800", "lone%ED%A0%80"),
    ],
)
def test_names_cannot_lead_out_of_the_folder(name: str, stem: str) -> None:
    assert shm.camera_file("arm", name) == f"cam_arm_{stem}.shm"


def test_long_names_are_cut_and_told_apart_by_a_hash() -> None:
    one, other = (shm.camera_meta_file("ä" * 90, "é" * 90 + end) for end in ("1", "2"))
    assert one != other
    assert max(len(name.encode()) for name in (one, other)) < 255
    assert one.startswith("cammeta_äää")


@given(st.just("") | prefixes, st.text(max_size=300))
def test_every_camera_file_can_be_made_and_stays_in_its_folder(prefix: str, name: str) -> None:
    for made in (shm.camera_file(prefix, name), shm.camera_meta_file(prefix, name)):
        assert Path(made).name == made
        assert "\0" not in made
        assert len(made.encode()) <= 255


@given(st.sets(st.tuples(st.just("") | prefixes, st.text(st.sampled_from("/%~2F_ag\0"), max_size=6)), max_size=20))
def test_no_two_cameras_share_a_file(cameras: set[tuple[str, str]]) -> None:
    files = [name(*camera) for camera in cameras for name in (shm.camera_file, shm.camera_meta_file)]
    assert len(set(files)) == 2 * len(cameras)
