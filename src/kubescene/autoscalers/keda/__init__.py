"""KEDA's rules: what triggers say, when a target is active, what holds when a trigger fails.

Functions of what they are given; objects and clocks are the controller's
(`kubescene.controllers.builtin.autoscaling.keda`).
"""
