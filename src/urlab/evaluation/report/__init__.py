"""From folders of results to numbers and to one HTML file to read."""

from urlab.evaluation.report.page import page, verdict, write_report
from urlab.evaluation.report.run_folder import EpisodeRecord, Run, RunFolderError, read_run
from urlab.evaluation.report.summary import RunSummary, TaskSummary, compare_runs, document, summarise

__all__ = [
    "EpisodeRecord",
    "Run",
    "RunFolderError",
    "RunSummary",
    "TaskSummary",
    "compare_runs",
    "document",
    "page",
    "read_run",
    "summarise",
    "verdict",
    "write_report",
]
