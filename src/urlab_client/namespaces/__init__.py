"""Groups of ops: ``client.scene``, ``client.sim`` and the rest."""
