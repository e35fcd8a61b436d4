"""Policy evaluation: tasks, episodes and scores behind an HTTP server that clients of GenManip can talk to."""
