"""Nodes: who makes them, says how they are, and takes pods off those that failed."""
