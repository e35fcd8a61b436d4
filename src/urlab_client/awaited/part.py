"""What the asyncio client is made of: its worker thread, and methods and values that are awaited."""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from urlab_client.lookup import FixedAttributes

P = ParamSpec("P")
T = TypeVar("T")
Wrapped = TypeVar("Wrapped")
Wrapped_co = TypeVar("Wrapped_co", covariant=True)


class ClientWorker:
    """The thread of one client. It ends with `stop`, or when nothing refers to it any more."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = ThreadPoolExecutor(1, "urlab-async")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns, called on the thread after all work that came before.

        Cancelling leaves work out that has not begun; what has begun goes on, without the caller.
        """
        if self._threads is None:
            return work(*args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, functools.partial(work, *args, **kwargs))

    def stop(self) -> None:
        """Take no more work."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False)


class AwaitedValue(Generic[T]):
    """A property that may ask the server: ``await client.recording.frame_count``. It is read when it is awaited."""

    def __init__(self, read: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._read = read

    def __await__(self) -> Generator[Any, None, T]:
        return self._read().__await__()

    def __repr__(self) -> str:
        return "a value that is awaited"


class AsyncPart(FixedAttributes, Generic[Wrapped_co]):
    """An object whose methods are awaited; ``_wrapped`` has them, and runs on the client's worker."""

    def __init__(self, wrapped: Wrapped_co, worker: ClientWorker) -> None:
        self._wrapped = wrapped
        self._worker = worker

    if not TYPE_CHECKING:  # a type checker is to find misspelt methods

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__} has no {name!r}", name=name, obj=self)
            if isinstance(getattr(type(self._wrapped), name, None), property):
                return self._property(name)
            return functools.partial(self._worker.run, getattr(self._wrapped, name))

    def _property(self, name: str) -> AwaitedValue[Any]:
        return AwaitedValue(lambda: self._worker.run(getattr, self._wrapped, name))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(word for word in dir(self._wrapped) if not word.startswith("_"))})

    def __repr__(self) -> str:
        return f"Async {self._wrapped!r}"


def awaited(
    method: Callable[Concatenate[Wrapped, P], T],
) -> Callable[Concatenate[AsyncPart[Wrapped], P], Coroutine[Any, Any, T]]:
    """The method of an `AsyncPart` that runs this one."""

    async def call(self: AsyncPart[Wrapped], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._worker.run(method, self._wrapped, *args, **kwargs)

    functools.update_wrapper(call, method)
    return call
