"""The ops by namespace: ``client.scene``, ``sim``, ``runtime``, ``outliner``, ``debug``, ``viewport``,
``recording`` and ``replay``. A method asks with a request of `urlab_wire.ops` and returns a type of
`urlab_client.types`; `base` is what all of them share.
"""
