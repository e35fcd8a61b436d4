"""Goals: where objects are in, which subgoals hold and the score out; and layouts to start an episode from.

`solids` are the objects as points, hulls and boxes, `relations` how one lies to another, `subgoals` whether a subgoal
holds, `scoring` the score through an episode, and the layout of a seed.
"""

from urlab.evaluation.goals.scoring import GoalTracker, sample_layout

__all__ = ["GoalTracker", "sample_layout"]
