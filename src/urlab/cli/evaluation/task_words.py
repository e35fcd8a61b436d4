"""Tasks as people name them on a command line."""

from pathlib import Path

from urlab.cli.evaluation.options import names

_ALL = "all"


def known_tasks(text: str) -> tuple[str, ...]:
    """Tasks, task files, robots (all their tasks) or ``all``, as written; TaskError lists the tasks there are."""
    from urlab.evaluation.embodiments import EMBODIMENTS
    from urlab.evaluation.tasks.task import TaskError, own_tasks, task_names

    words = names(text)
    if not words:
        raise TaskError(f"--tasks {text!r} names no task; there are: {_ALL}, {', '.join(task_names())}")
    own_tasks(word for word in words if word.endswith(".toml"))
    allowed = (_ALL, *EMBODIMENTS, *task_names())
    for word in words:
        if not word.endswith(".toml") and word not in allowed:
            raise TaskError(f"there is no task {word!r}{_near(word, allowed)}")
    return tuple(words)


def _near(word: str, allowed: tuple[str, ...]) -> str:
    """What may have been meant."""
    from urlab.evaluation.tasks.reading import allowed_words

    file = Path(f"{word}.toml")
    if file.is_file():
        return f", but a file {file}: name it with its ending"
    return f", nor is it a .toml file; {allowed_words(word, allowed)}"
