"""Workloads: who keeps pods, a folder for each kind, and how many of them may go at once."""
