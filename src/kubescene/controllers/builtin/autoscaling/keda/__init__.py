"""KEDA on real objects: a ``ScaledObject`` makes an HPA, feeds it, and scales to zero and back.

The rules are `kubescene.autoscalers.keda`.
"""
