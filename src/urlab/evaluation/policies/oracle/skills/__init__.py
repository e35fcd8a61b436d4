"""What a hand can do: one file per step of the task files' ``[[oracle]]``.

A skill is a function of the world and the step that yields once per control step (see `Motion`). It looks at the result
and tries again a few times before it gives up; giving up is silent, as the goal of the task will tell.
"""

from collections.abc import Callable, Mapping
from typing import Any

from urlab.evaluation.policies.oracle.motion import Motion
from urlab.evaluation.policies.oracle.skills.hand_over import hand_over
from urlab.evaluation.policies.oracle.skills.lift_together import lift_together
from urlab.evaluation.policies.oracle.skills.operate import operate
from urlab.evaluation.policies.oracle.skills.pick import pick
from urlab.evaluation.policies.oracle.skills.place import place
from urlab.evaluation.policies.oracle.skills.rest import go_home, rest
from urlab.evaluation.policies.oracle.world import World
from urlab.evaluation.tasks import oracle_steps as steps

SKILLS: Mapping[type[steps.OracleStep], Callable[[World, Any], Motion]] = {
    steps.Pick: pick,
    steps.Place: place,
    steps.Operate: operate,
    steps.LiftTogether: lift_together,
    steps.HandOver: hand_over,
    steps.Wait: rest,
    steps.Home: go_home,
}

__all__ = ["SKILLS"]
