"""Goals: whether objects are where the task wants them, the score of an episode, and layouts to start it from."""

from urlab.evaluation.goals.scoring import HOLD_STEPS_P2, HOLD_STEPS_P4, GoalTracker, sample_layout

__all__ = ["HOLD_STEPS_P2", "HOLD_STEPS_P4", "GoalTracker", "sample_layout"]
