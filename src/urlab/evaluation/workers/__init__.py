"""Worker processes, each with one simulation, and the pool that hands a run's episodes to them."""
