"""Who has a region open."""

import mmap
import os
import signal
import subprocess
import sys
import threading

import pytest

from urlab.transport.shm.folder import ShmFolder
from urlab.transport.shm.readers import Readers

READER = """
import mmap, os, sys
descriptor = os.open(sys.argv[1], os.O_RDONLY)
memory = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
os.close(descriptor)
print("open", flush=True)
sys.stdin.readline()
"""
PATIENCE_S = 10.0


class Watched:
    """A folder with a region, and who reads it."""

    def __init__(self, root):
        self._changed = threading.Condition()
        self.folder = ShmFolder(root)
        self.readers = Readers(self._note)
        self.region = self.folder.make_region("state.shm", 4096, 4, readers=self.readers)

    def _note(self):
        with self._changed:
            self._changed.notify_all()

    def becomes_read(self, wanted, within_s=PATIENCE_S):
        with self._changed:
            return self._changed.wait_for(lambda: self.readers.reads("state.shm") is wanted, within_s)

    def renew(self):
        self.region.close()
        self.region = self.folder.make_region("state.shm", 4096, 4, readers=self.readers)

    def close(self):
        self.region.close()
        self.readers.close()
        self.folder.close()


@pytest.fixture
def watched(tmp_path):
    one = Watched(tmp_path)
    yield one
    one.close()


def test_the_maker_is_no_reader(watched):
    assert not watched.readers.reads("state.shm")
    assert not watched.readers.reads("nothing.shm")


def test_a_mapping_is_a_reader_until_it_is_gone(watched):
    with watched.region.path.open("rb") as file:
        memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    assert watched.becomes_read(True)
    memory.close()
    assert watched.becomes_read(False)


def test_two_readers_are_counted(watched):
    first = os.open(watched.region.path, os.O_RDONLY)
    assert watched.becomes_read(True)
    second = os.open(watched.region.path, os.O_RDONLY)
    os.close(first)
    assert not watched.becomes_read(False, within_s=0.2)
    os.close(second)
    assert watched.becomes_read(False)


def test_a_reader_that_is_killed_is_no_reader_any_more(watched):
    command = [sys.executable, "-c", READER, str(watched.region.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline()
        assert watched.becomes_read(True)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert watched.becomes_read(False)


def test_whoever_keeps_an_old_file_does_not_read_the_new_one(watched):
    with watched.region.path.open("rb"):
        assert watched.becomes_read(True)
        watched.renew()
        assert watched.becomes_read(False)
        with watched.region.path.open("rb"):
            assert watched.becomes_read(True)
        assert watched.becomes_read(False)
