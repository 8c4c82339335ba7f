"""A world of replicas: stocks, movements and the environment that moves them.

`worlds` is what both modes have in common, `fixed` the mode of our own; Skenario's is `faithful`
beside this folder.
"""
