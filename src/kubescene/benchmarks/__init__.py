"""Replays of kube-scheduler's own benchmark, scheduler_perf, in a world of ours.

`workloads` reads the files that scheduler_perf is configured with, `operations` knows their op
codes, `templates` fills in their templates. `replaying` does what they say in a `Stage`, and
`reports` shows what came of it beside the figures that kube-scheduler is held to.
Nothing here changes how pods are scheduled.
"""

from kubescene.benchmarks.measurements import Measurement, WorkloadResult
from kubescene.benchmarks.replaying import replay
from kubescene.benchmarks.workloads import Workload, load_workloads

__all__ = ["Measurement", "Workload", "WorkloadResult", "load_workloads", "replay"]
