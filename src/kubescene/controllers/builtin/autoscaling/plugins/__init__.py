"""Autoscalers behind the autoscaler interface, on real objects: ``PluginAutoscaler``.

What an autoscaler is told and asked is said in `kubescene.autoscalers.interfaces`. Each object is a
run of its own, in a partition; pods of its target, and what scrapes see of them, become messages.
"""
