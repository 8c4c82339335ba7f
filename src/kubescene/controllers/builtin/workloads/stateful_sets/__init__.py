"""Pods with fixed names, made, replaced and removed in order.

`statefulset` is the controller, `passes` one pass over a set; `members` is what it knows of its
pods, `claims` are the volume claims that go with them.
"""
