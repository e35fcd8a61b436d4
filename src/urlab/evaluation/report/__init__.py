"""From folders of results to numbers and to one HTML file for people."""

from urlab.evaluation.report.page import page, write_report
from urlab.evaluation.report.summary import RunSummary, TaskSummary, document, summarise
from urlab.evaluation.runs.results import Run, RunFolderError, read_run

__all__ = [
    "Run",
    "RunFolderError",
    "RunSummary",
    "TaskSummary",
    "document",
    "page",
    "read_run",
    "summarise",
    "write_report",
]
