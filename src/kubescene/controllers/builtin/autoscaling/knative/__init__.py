"""Knative's pod autoscaler (KPA) on real objects: ``PodAutoscaler`` with its annotations.

The rule is `kubescene.autoscalers.kpa`, which is equal to recorded answers of the real one.
"""
