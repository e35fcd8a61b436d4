"""How CoACD is called. Changing anything here makes new entries in the cache."""

from typing import Any

PARAMETERS: dict[str, Any] = {
    "max_convex_hull": -1,
    "preprocess_mode": "auto",
    "preprocess_resolution": 30,
    "resolution": 1000,
    "mcts_nodes": 20,
    "mcts_iterations": 150,
    "mcts_max_depth": 3,
    "pca": False,
    "merge": True,
    "decimate": False,
    "max_ch_vertex": 100,
    "extrude": False,
    "extrude_margin": 0.01,
    "apx_mode": "ch",
    "seed": 0,
    "real_metric": False,
}
"""Every keyword of ``coacd.run_coacd`` but the threshold."""
