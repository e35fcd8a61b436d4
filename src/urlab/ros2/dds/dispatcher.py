"""The thread that waits for samples and calls whoever wants them."""

import ctypes as ct
import itertools
import logging
import threading
from collections.abc import Callable

from urlab.ros2.dds.library import FOREVER_NS, check, lib

log = logging.getLogger("urlab.ros2")

_WAKE = 0
_AT_ONCE = 64


class Dispatcher:
    """One thread, one waitset: the functions of all conditions are called one after the other."""

    def __init__(self, participant: int, name: str) -> None:
        self._calls: dict[int, Callable[[], None]] = {}
        self._keys = itertools.count(_WAKE + 1)
        self._stopping = False
        self._waitset = check(lib.dds_create_waitset(participant), "create a waitset")
        self._guard = check(lib.dds_create_guardcondition(participant), "create a guard condition")
        check(lib.dds_waitset_attach(self._waitset, self._guard, _WAKE), "wait for a guard condition")
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, condition: int, call: Callable[[], None]) -> int:
        """Call that whenever the condition holds; the key is for `remove`."""
        key = next(self._keys)
        self._calls[key] = call
        check(lib.dds_waitset_attach(self._waitset, condition, key), "wait for a reader")
        return key

    def remove(self, condition: int, key: int) -> None:
        """Call it no more; a call that is under way goes on."""
        lib.dds_waitset_detach(self._waitset, condition)
        self._calls.pop(key, None)

    def close(self) -> None:
        """End the thread, once a call that is under way has returned."""
        self._stopping = True
        lib.dds_set_guardcondition(self._guard, True)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        lib.dds_delete(self._waitset)
        lib.dds_delete(self._guard)

    def _run(self) -> None:
        keys = (ct.c_ssize_t * _AT_ONCE)()
        while not self._stopping:
            count = lib.dds_waitset_wait(self._waitset, keys, _AT_ONCE, FOREVER_NS)
            if count < 0:
                return
            for key in keys[: min(count, _AT_ONCE)]:
                self._call(key)

    def _call(self, key: int) -> None:
        call = self._calls.get(key)
        if call is None or self._stopping:
            return
        try:
            call()
        except Exception:
            log.exception("a reader's samples were not delivered")
