"""What `urlab bench` can measure: one entry each. Whatever measures, reports or draws is imported when it is needed."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any

from urlab.cli.bench.evaluation import EVAL_SCENES, make_eval_plan
from urlab.cli.bench.plan import SCENES, make_plan
from urlab.cli.bench.ros2 import ROS2_SCENES, make_ros2_plan
from urlab.cli.bench.transports import SCENE_NAMES, make_transports_plan
from urlab.cli.complaint import CommandError

INSTALL = "pip install 'urlab-headless[bench]'"


@dataclass(frozen=True, slots=True)
class Lazy:
    """A function by module and name, imported when it is asked for."""

    module: str
    name: str

    def load(self) -> Callable[..., Any]:
        """The function; ImportError when something is not installed."""
        function: Callable[..., Any] = getattr(import_module(self.module), self.name)
        return function


@dataclass(frozen=True, slots=True)
class Extra:
    """Packages beyond those of every measurement: the extras' names, as pip takes them, and what they are for."""

    names: str
    subject: str

    @property
    def install(self) -> str:
        """The line that installs them."""
        return f"pip install 'urlab-headless[{self.names}]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPart:
    """One kind of measurement; its files are ``stem`` with .json and .png.

    ``make_plan`` takes quick, scenes, rounds, and steps where there is a soak: ``soak_steps``. ``run`` takes the plan
    and a `Watcher`, ``report`` the result and a console, ``draw`` the result and a path. Pairs of amounts: full, quick.
    """

    stem: str
    scenes: tuple[str, ...]
    rounds: tuple[int, int]
    soak_steps: tuple[int, int] | None = None
    make_plan: Callable[..., Any]
    run: Lazy
    report: Lazy
    draw: Lazy
    extra: Extra | None = None

    @property
    def runner(self) -> Callable[..., Any]:
        """What measures; CommandError with the line that installs what is missing."""
        try:
            return self.run.load()
        except ImportError as missing:
            if self.extra is None:
                raise
            raise CommandError(
                f"urlab bench {self.stem} measures {self.extra.subject}, and: {missing}. {self.extra.install}"
            ) from missing


MACHINE = BenchPart(
    stem="bench",
    scenes=tuple(SCENES),
    rounds=(20, 3),
    soak_steps=(200_000, 5_000),
    make_plan=make_plan,
    run=Lazy("urlab.cli.bench.runner", "run"),
    report=Lazy("urlab.cli.bench.report", "print_report"),
    draw=Lazy("urlab.cli.bench.plot", "draw"),
)
"""The machine as a whole: what the command measures when no part is named."""


class Part(StrEnum):
    """What can be measured instead: the word that names it on the command line."""

    TRANSPORTS = "transports"
    ROS2 = "ros2"
    EVAL = "eval"


PARTS = {
    Part.TRANSPORTS: BenchPart(
        stem="transports",
        scenes=SCENE_NAMES,
        rounds=(12, 3),
        soak_steps=(1_000_000, 5_000),
        make_plan=make_transports_plan,
        run=Lazy("urlab.cli.bench.transports.runner", "run_transports"),
        report=Lazy("urlab.cli.bench.transports.report", "print_transports"),
        draw=Lazy("urlab.cli.bench.transports.plot", "draw_transports"),
    ),
    Part.ROS2: BenchPart(
        stem="ros2",
        scenes=ROS2_SCENES,
        rounds=(5, 1),
        make_plan=make_ros2_plan,
        run=Lazy("urlab.cli.bench.ros2.runner", "run_ros2"),
        report=Lazy("urlab.cli.bench.ros2.report", "print_ros2"),
        draw=Lazy("urlab.cli.bench.ros2.plot", "draw_ros2"),
        extra=Extra("bench,ros2", "the bridge"),
    ),
    Part.EVAL: BenchPart(
        stem="eval",
        scenes=EVAL_SCENES,
        rounds=(8, 1),
        make_plan=make_eval_plan,
        run=Lazy("urlab.cli.bench.evaluation.runner", "run_eval"),
        report=Lazy("urlab.cli.bench.evaluation.report", "print_eval"),
        draw=Lazy("urlab.cli.bench.evaluation.plot", "draw_eval"),
        extra=Extra("bench,eval", "policy evaluation"),
    ),
}
