"""A scheduler with the extension points, decisions and messages of kube-scheduler v1.36.

Node state is columnar, plugins answer for many nodes at once, and one call of `Scheduler.run_once` is one
pop from the queue and all that follows without waiting. `interfaces` is the plugin author's manual.
"""
