"""Progress on the terminal. It is drawn between measurements only: a refreshing thread would be measured too."""

from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class Watcher:
    """Shows the parts of a run one below the other. A context manager."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<14}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[doing]}"),
            console=console,
            auto_refresh=False,
        )
        self._finish: Callable[[], None] = lambda: None

    def __enter__(self) -> "Watcher":
        self._progress.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if failure[0] is None:
            self._finish()
        self._progress.stop()

    def part(self, name: str, ticks: int) -> Callable[[str], None]:
        """Begin a part; the function that is returned is told what comes next, ``ticks`` times."""
        self._finish()
        progress = self._progress
        task = progress.add_task(name, total=ticks, doing="")
        done = -1

        def tick(doing: str) -> None:
            nonlocal done
            done += 1
            progress.update(task, completed=max(done, 0), doing=doing, refresh=True)

        self._finish = lambda: progress.update(task, completed=ticks, doing="", refresh=True)
        return tick
