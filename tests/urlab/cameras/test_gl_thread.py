"""The thread that talks to GL."""

import os
import sys
import threading
from collections.abc import Iterator

import pytest

from urlab.cameras import GlThread, shared_gl
from urlab.errors import NoViewport, OpTimeout


@pytest.fixture
def gl() -> Iterator[GlThread]:
    """A GL thread of the test's own."""
    made = GlThread()
    try:
        made.gl_name()
    except NoViewport as none:
        pytest.skip(none.message)
    yield made
    made.close()


def test_all_work_is_done_on_one_daemon_thread(gl: GlThread) -> None:
    first, second = gl.run(threading.current_thread), gl.run(threading.current_thread)
    assert first is second
    assert first is not threading.current_thread()
    assert (first.name, first.daemon) == ("urlab-gl", True)


def test_a_context_is_current_there(gl: GlThread) -> None:
    def renderer() -> str:
        from OpenGL import GL

        return str(GL.glGetString(GL.GL_RENDERER).decode())

    assert gl.run(renderer) == gl.gl_name() != ""


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own elsewhere")
def test_it_gives_way_to_everything_else(gl: GlThread) -> None:
    here = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    there = gl.run(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
    assert there == min(19, here + 15)
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == here


def test_work_that_fails_fails_for_whoever_asked_and_nobody_else(gl: GlThread) -> None:
    with pytest.raises(ZeroDivisionError):
        gl.run(lambda: 1 // 0)
    assert gl.run(lambda: 7) == 7


def test_work_may_ask_for_more_work(gl: GlThread) -> None:
    assert gl.run(lambda: gl.run(lambda: 7)) == 7


def test_work_that_takes_too_long_is_left_alone_and_what_waited_behind_it_is_dropped(gl: GlThread) -> None:
    done, behind = threading.Event(), threading.Event()
    with pytest.raises(OpTimeout, match=r"within 0\.01 s"):
        gl.run(done.wait, timeout_s=0.01)
    with pytest.raises(OpTimeout):
        gl.run(behind.set, timeout_s=0.01)
    done.set()
    assert gl.run(lambda: 7) == 7
    assert not behind.is_set()


def test_an_error_of_the_work_that_is_itself_a_timeout_is_passed_on(gl: GlThread) -> None:
    def late() -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        gl.run(late)


class Resource:
    def __init__(self) -> None:
        self.freed_by: list[threading.Thread] = []

    def free(self) -> None:
        self.freed_by.append(threading.current_thread())


def test_closing_frees_what_was_adopted_on_that_thread_and_ends_it(gl: GlThread) -> None:
    resource, thread = Resource(), gl.run(threading.current_thread)
    gl.adopt(resource)
    gl.close()
    assert resource.freed_by == [thread]
    assert not thread.is_alive()
    with pytest.raises(NoViewport, match="the server is closing"):
        gl.run(lambda: 7)


def test_a_thread_that_was_never_used_closes_too() -> None:
    unused = GlThread()
    unused.close()
    with pytest.raises(NoViewport):
        unused.gl_name()


def test_all_views_of_a_process_share_one() -> None:
    assert shared_gl() is shared_gl()


def test_posted_work_is_not_waited_for_but_done_in_its_turn(gl: GlThread) -> None:
    held, done = threading.Event(), []
    posted = [gl.post(held.wait), gl.post(lambda: done.append(threading.current_thread().name))]
    assert not posted[1].done()
    held.set()
    posted[1].result(5)
    assert done == ["urlab-gl"]
