import urlab.recording


def test_the_front_door_is_what_it_promises():
    assert all(hasattr(urlab.recording, name) for name in urlab.recording.__all__)
    assert sorted(urlab.recording.__all__) == [
        "Allow",
        "DEFAULT_FILE",
        "JointMapping",
        "LIVE",
        "RecordedJoint",
        "Recorder",
        "Recording",
        "ReplayPlayer",
        "ReplaySession",
        "UNLIMITED_S",
        "load_path",
        "match_joints",
        "read_recording",
        "save_path",
        "write_recording",
    ]
