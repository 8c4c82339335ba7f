"""Devices and claims: who may have which device on which node.

From below to above: `slices` (what drivers offer), `pools` (what of it a node can reach),
`requests` (what claims ask for), `allocator` (the search), `results` (what is written into a
claim). Beside them `allocated` keeps what is taken, `cluster` that and what there is for one
scheduler, and `filtering` what the search said about a node until something changes there.
Everything up to the search works on immutable views and is free of the scheduler; the plugin
DynamicResources puts it to use.
"""
