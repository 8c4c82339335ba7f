"""Pods that end: Jobs, CronJobs that make them, and Jobs that go a while after they have ended.

`job` is the controller; `pods` is what it knows of a Job's pods, `rules` are its policies (when a
pod counts as failed, when a Job is over), `indexes` the sets of completion indexes.
"""
