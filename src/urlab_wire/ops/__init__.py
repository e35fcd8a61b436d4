"""The request and reply types of all ops, one file per namespace; `session` has hello and meta, `stepping` step,
reset and forward. A request names its reply: `urlab_wire.catalogue` lists the ops from them.
"""
