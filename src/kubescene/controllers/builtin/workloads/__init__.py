"""Workloads: who keeps pods, and how many of them may go at once."""
