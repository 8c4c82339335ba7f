"""Simulated requests and replicas: how an autoscaler behaves under traffic."""
