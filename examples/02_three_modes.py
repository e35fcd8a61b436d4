"""Direct, puppet and live: who moves time."""

import time

import urlab

with urlab.launch("panda") as client:
    arm = client.articulations["panda"]

    # Direct: the server steps exactly as often as you ask, as fast as it can.
    client.reset(keyframe_name="home")
    client.step(n_steps=500)
    print(f"direct: {client.sim_time:.3f} s after 500 steps")

    # Puppet: you integrate with your own copy of the model; the server shows your state.
    client.runtime.set_mode("puppet")
    client.data.ctrl[:7] = arm.qpos_array[:7]
    for _ in range(100):
        client.step(n_steps=1)
    print(f"puppet: {client.sim_time:.3f} s, and every state of it was computed here")

    # Live: the server follows the clock on the wall.
    client.runtime.set_mode("live")
    begin = client.step()["time"]
    time.sleep(0.5)
    print(f"live: {client.step()['time'] - begin:.2f} s went by while this script slept for half a second")
