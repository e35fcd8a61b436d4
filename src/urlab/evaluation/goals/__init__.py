"""Goals: whether objects are where the task wants them, the score of an episode, and layouts to start it from."""

from urlab.evaluation.goals.scoring import GoalTracker, sample_layout

__all__ = ["GoalTracker", "sample_layout"]
