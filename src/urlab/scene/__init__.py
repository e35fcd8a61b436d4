"""What exists, as data and files; no MuJoCo here.

`level` has the data: levels, actors, lights. `level_file` reads and writes a level; `names` says which names are legal;
`blueprint_record` is what can be placed, `sidecar` the file beside a model; `project` is the folder that holds all;
`randomisation` has distributions, and draws from them.
"""
