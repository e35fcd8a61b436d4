"""What the options of `urlab bench` say of themselves, from the table of parts."""

from urlab.cli.bench.parts import MACHINE, PARTS

PART = "Compare the transports instead, or measure the ROS 2 bridge, or policy evaluation."

SCENES = f"Scenes to measure, of {', '.join(MACHINE.scenes)}; " + "; ".join(
    f"of {', '.join(part.scenes)} for {name}" for name, part in PARTS.items()
)

ROUNDS = "Rounds over all cases: {} or {} when quick; ".format(*MACHINE.rounds) + "; ".join(
    "{} or {} for {}".format(*part.rounds, name) for name, part in PARTS.items()
)

STEPS = "Requests of the soak: {} or {} when quick; ".format(*MACHINE.soak_steps or ()) + "; ".join(
    f"{name} has none" if part.soak_steps is None else "{} or {} for {}".format(*part.soak_steps, name)
    for name, part in PARTS.items()
)

OUT = f"Folder for {MACHINE.stem}.json and .png, or those of {', '.join(PARTS)}."
