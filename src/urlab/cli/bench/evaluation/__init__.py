"""`urlab bench eval`: what a control step of policy evaluation costs over HTTP, and how long a whole evaluation takes.

What is exported here is light; whatever measures is imported when a command runs.
"""

from urlab.cli.bench.evaluation.plan import EVAL_SCENES, EvalPlan, make_eval_plan

__all__ = ["EVAL_SCENES", "EvalPlan", "make_eval_plan"]
