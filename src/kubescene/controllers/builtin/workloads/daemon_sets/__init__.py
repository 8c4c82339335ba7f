"""A pod for every node that may have one.

`daemonset` is the controller; `places` says which nodes those are and what there is on each.
"""
