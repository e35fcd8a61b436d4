"""Bare physics in a process of its own: one control step of a trail each time it is told to."""

import sys

from urlab.cli.bench.evaluation.pipe_child import obey
from urlab.cli.bench.evaluation.trail import BareSteps, Trail

if __name__ == "__main__":
    steps = BareSteps(Trail(sys.argv[1], int(sys.argv[2])))
    obey(steps.reset, steps.once)
