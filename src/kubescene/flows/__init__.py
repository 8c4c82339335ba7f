"""Requests: when they come, who gets one, how replicas share their CPU, what is kept of each.

TrafficRuns (`kubescene.traffic`) and Traffic objects in a cluster are served by the same code. It
knows neither replicas nor pods: arrivals and stations go in, columns of requests come out.
"""
