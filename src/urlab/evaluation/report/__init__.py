"""Folders of results in; numbers, and one HTML file to read, out."""

from urlab.evaluation.report.page import page, verdict, write_report
from urlab.evaluation.report.statistics import (
    RunSummary,
    TaskSummary,
    UnlikeRuns,
    compare_runs,
    document,
    refuse_unlike,
    summarise,
)
from urlab.evaluation.runs.results import Run, RunFolderError, read_run

__all__ = [
    "Run",
    "RunFolderError",
    "RunSummary",
    "TaskSummary",
    "UnlikeRuns",
    "compare_runs",
    "document",
    "page",
    "read_run",
    "refuse_unlike",
    "summarise",
    "verdict",
    "write_report",
]
