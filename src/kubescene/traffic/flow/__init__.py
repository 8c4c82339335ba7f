"""What becomes of requests: who gets one, how replicas share their CPU, what is kept of each.

Knows neither specs nor autoscalers: a batch of arrivals and the replicas that are active go in,
columns of requests come out.
"""
