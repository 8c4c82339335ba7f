"""One scheduling cycle: from a pod and the state of all nodes to a decision, step by step.

PreFilter, Filter, PostFilter, PreScore, Score and extenders in the order of kube-scheduler. What is
in here is the specification; `fast` gives the same answers sooner.
"""
