"""Controllers that run inside the simulation: reconcilers on work queues, and the kubelet stand-in.

A reconciler looks at one object and returns what to do; the runtime owns watches, queue and order,
and makes the writes. `kubescene.control.loops` is the interface the engine sees.
"""
