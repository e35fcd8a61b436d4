"""Goals: whether objects are where the task wants them, and the score of an episode."""
