"""Goals: where objects are in, which subgoals hold and the score out; and layouts to start an episode from.

`solids` are the objects as points, hulls and boxes, `relations` how one lies to another, `scoring` whether a subgoal
holds, the score through an episode, and the layout of a seed.
"""

from urlab.evaluation.goals.scoring import GoalTracker, sample_layout

__all__ = ["GoalTracker", "sample_layout"]
