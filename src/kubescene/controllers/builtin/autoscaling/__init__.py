"""Autoscalers as controllers on real objects: what they see, when they look, what they write.

How they decide is in `kubescene.autoscalers`, what they measure in `kubescene.usage`.
"""
