"""The browser editor: one more client of the server, in a process of its own.

`python -m urlab.editor` is that process; `urlab.editor_process` starts it. `gate` decides who gets in, `editor` puts
the parts together, `server_link` asks the server and `feed` reads the world, which `world_scene` (with `shapes`),
`decorations` and `soft_bodies` show. `page` is a browser tab with its `panels` and `gizmo`; `controls` says which of
them may change things, by `dragging`, keys and `shared_camera` as well. `pictures` are drawn once for all pages;
`scripts` are what the page does in the browser beside viser.
"""
