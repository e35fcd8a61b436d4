"""What somebody wants to be run: task words, a run id, how many episodes from which seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from urlab.errors import known
from urlab.evaluation.problems import BadJob
from urlab.evaluation.results import check_run_id
from urlab.evaluation.run import Run
from urlab.evaluation.settings import ServerSettings
from urlab.evaluation.tasks.task import Task, find_task, own_tasks, task_names

ALL = "all"
MAX_EPISODES = 10_000
_MAX_WORDS = 1000
_FILES = "; files of one's own are named when the server starts: urlab eval serve --tasks"


@dataclass(frozen=True)
class JobRequest:
    """``words`` are names of tasks, `ALL`, or an embodiment (all its tasks)."""

    words: tuple[str, ...]
    run_id: str | None
    episodes: int
    seed: int


class JobDesk:
    """Turns requests into runs. Task files of one's own are read at the start only: requests cannot name files."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        files = list(dict.fromkeys(word for word in settings.tasks if word.endswith(".toml")))
        own = dict(zip(files, own_tasks(files), strict=True))
        self._tasks = {task.name: task for task in (*map(find_task, task_names()), *own.values())}
        words = tuple(own[word].name if word in own else word for word in settings.tasks)
        self._default = JobRequest(words, settings.run_id, settings.episodes, settings.seed)

    def default_run(self) -> Run:
        """The job that the server was started with."""
        return self.run(self._default)

    def run(self, request: JobRequest) -> Run:
        """The run that was asked for, its folder begun; BadJob names what cannot be."""
        if not 1 <= request.episodes <= MAX_EPISODES or not 0 <= request.seed < 2**31:
            raise BadJob(f"episodes must be 1 to {MAX_EPISODES} and seed a whole number that is not negative")
        if request.run_id is not None:
            check_run_id(request.run_id)
        tasks = list({task.name: task for word in request.words for task in self._named(word)}.values())
        if not tasks:
            raise BadJob(f"no tasks were named; tasks: {known(self._tasks)}, or {ALL}")
        seeds = range(request.seed, request.seed + request.episodes)
        run = Run(tasks, seeds, self._settings.results, request.run_id)
        run.write_description({"cameras": self._settings.cameras, "absolute": self._settings.absolute})
        return run

    def read(self, data: Mapping[str, object]) -> JobRequest:
        """A request from the body of /start_new_job; ``episodes`` and ``seed`` are ours and optional."""
        request = replace(self._default, words=_words(data.get("config_path")), run_id=_run_id(data.get("run_id")))
        return replace(
            request,
            episodes=_whole("episodes", data.get("episodes"), request.episodes),
            seed=_whole("seed", data.get("seed"), request.seed),
        )

    def _named(self, word: str) -> list[Task]:
        if word == ALL:
            return list(self._tasks.values())
        name = PurePosixPath(word).stem if word.endswith((".yml", ".yaml", ".toml", ".json")) else word
        if name in self._tasks:
            return [self._tasks[name]]
        found = [task for task in self._tasks.values() if task.embodiment == name]
        if not found:
            robots = known({task.embodiment for task in self._tasks.values()})
            raise BadJob(
                f"there is no task {word[:60]!r}; tasks: {known(self._tasks)}; all tasks of a robot: {robots}; {ALL}"
                + (_FILES if word.endswith(".toml") else "")
            )
        return found


def _words(value: object) -> tuple[str, ...]:
    words: Sequence[object] = value if isinstance(value, list | tuple) else ()
    good = [word.strip() for word in words if isinstance(word, str) and word.strip()]
    if not good or len(good) != len(words) or len(good) > _MAX_WORDS:
        raise BadJob("config_path must be a list of names of tasks, not empty, such as ['all']")
    return tuple(good)


def _run_id(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise BadJob(f"run_id must be text or null, not {type(value).__name__}")
    return value


def _whole(field: str, value: object, default: int) -> int:
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadJob(f"{field} must be a whole number, not {type(value).__name__}")
    return value
