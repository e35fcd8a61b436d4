"""Server and client in one process: no ports, no second terminal. Time moves when you step."""

import urlab

with urlab.launch("demo") as client:
    arm = client.articulations["panda"]
    client.reset(keyframe_name="panda_home")
    arm.set_ctrl({"joint1": 0.5})
    for _ in range(100):
        client.step(n_steps=10)
    print(f"{client.sim_time:.2f} s simulated, joint1 is at {arm.get_qpos()['joint1']:.3f} rad")
