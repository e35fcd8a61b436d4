"""Record every step, save it, and watch it again, frame by frame."""

import tempfile

import urlab

with tempfile.TemporaryDirectory() as project, urlab.launch("panda", project=project) as client:
    arm = client.articulations["panda"]
    client.reset(keyframe_name="home")
    client.recording.start("wave")
    for angle in (0.0, 0.4, -0.4, 0.0):
        arm.set_ctrl({"joint1": angle})
        client.step(n_steps=250)
    summary = client.recording.stop()
    path = client.recording.save("wave")
    print(f"{summary.frame_count} frames, {summary.sim_duration_s:.2f} s, saved as {path.name}")

    client.replay.load(path)
    status = client.replay.start()
    for _ in range(0, status.total_frames, 250):
        reply = client.step(n_steps=250)
        print(f"  frame {reply['replay']['frame']:4d}: joint1 at {arm.get_qpos()['joint1']:+.3f} rad")
    client.replay.stop()
