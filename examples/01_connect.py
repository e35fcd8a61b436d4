"""Connect to a running server (`urlab serve`), look around, and step it from here."""

import argparse

from urlab_client import URLabClient

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--address", default="tcp://127.0.0.1")
options.add_argument("--step-port", type=int, default=5559)
where = options.parse_args()

with URLabClient(where.address, step_port=where.step_port, step_mode="direct") as client:
    client.discover()
    print(f"server {client.urlab_version}, MuJoCo {client.mujoco_version}")
    for prefix, robot in client.articulations.items():
        print(f"  {prefix} ({robot.actor_id}): joints {', '.join(robot.joints)}")
    print(f"  entities: {', '.join(client.entities)}")

    client.reset(keyframe_name="panda_home")
    for _ in range(50):
        reply = client.step(n_steps=4)
    print(f"step {reply['step']}, time {client.sim_time:.3f} s")
    print(f"the pallet is at {client.entities['pallet'].root_pos_w.round(3)}")
