"""Tasks: which objects lie where, what the robot is told to do with them, and when that is done. One file each."""
