"""A robot with a PD controller: setpoints are angles, the server turns them into torques at every sub-step."""

import urlab

with urlab.launch(["floor", "quadruped"]) as client:
    dog = client.articulations["quadruped"]
    print(f"controller {dog.controller.kind}, default kp {dog.controller.params['default_kp']}")

    client.reset(keyframe_name="home")
    client.step(n_steps=500)
    print(f"stands at {dog.root_pos_w[2]:.3f} m")

    # Stiffer legs sag less.
    dog.controller.set_defaults(kp=250.0, kv=6.0)
    client.step(n_steps=500)
    print(f"stiffer: {dog.root_pos_w[2]:.3f} m")

    # A push from the side, for a tenth of a second.
    dog.apply_xfrc(body="trunk", force=(0.0, 60.0, 0.0))
    client.step(n_steps=50)
    print(f"pushed: sideways at {dog.root_lin_vel_w[1]:.2f} m/s")
    client.step(n_steps=500)
    print(f"recovered: sideways at {dog.root_lin_vel_w[1]:.2f} m/s, {dog.root_pos_w[2]:.3f} m high")

    # The same joints without the controller: setpoints are torques now.
    dog.control_mode = "raw"
    dog.set_ctrl(dict.fromkeys(dog.actuators, 0.0))
    client.step(n_steps=500)
    print(f"limp: {dog.root_pos_w[2]:.3f} m")
