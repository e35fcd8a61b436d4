"""Tasks as people name them on a command line."""

from urlab.cli.evaluation.options import names


def known_tasks(text: str) -> tuple[str, ...]:
    """Tasks, task files, robots (all their tasks) or ``all``, as written; TaskError lists the tasks there are."""
    from urlab.evaluation.embodiments import EMBODIMENTS
    from urlab.evaluation.tasks.task import TaskError, find_task, own_tasks, task_names

    words = names(text)
    if not words:
        raise TaskError(f"--tasks {text!r} names no task; there are: all, {', '.join(task_names())}")
    own_tasks(word for word in words if word.endswith(".toml"))
    for word in words:
        if word != "all" and word not in EMBODIMENTS:
            find_task(word)
    return tuple(words)
