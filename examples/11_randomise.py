"""Draw another world with every seed: the mass, friction and place of a box, gravity, and noise of the sensors."""

import urlab

TABLE = {
    "mass": {"kind": "body", "name": "box", "field": "density_scale", "distribution": "uniform", "low": 0.5, "high": 2},
    "grip": {"kind": "geom", "name": "box*", "field": "friction", "distribution": "log_uniform", "low": 0.2, "high": 1},
    "place": {
        "kind": "object", "name": "box", "field": "pos", "apply": "add",
        "distribution": "uniform", "low": [-0.05, -0.05, 0], "high": [0.05, 0.05, 0],
    },
    "pull": {"kind": "option", "field": "gravity", "distribution": "normal", "mean": [0, 0, -9.81], "std": [0, 0, 0.2]},
}  # fmt: skip

with urlab.launch("demo", step_mode="direct") as client:
    for seed in (1, 2, 1):
        drawn = client.reset(seed=seed, randomize=TABLE)["randomized"]["changes"]
        client.step(100)
        place = client.entities["box"].root_pos_w
        print(f"seed {seed}: mass x {drawn[0]['value'][0]:.2f}, after 100 steps the box is at {place.round(4)}")
