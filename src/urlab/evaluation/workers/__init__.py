"""Worker processes, each with one simulation, and the pool that hands a run's episodes to them.

In the server's process: `pool` (worker ids, their episodes and replies) over `process` (one child process). In the
child: `worker` (runs the episodes), `evidence` (writes their files) and `live` (tells those who watch, who read it
elsewhere). `messages` are what the two send each other.
"""
