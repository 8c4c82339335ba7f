"""Simulated requests and replicas: how an autoscaler behaves under traffic.

`run` simulates a `TrafficRun`: a pattern of requests, a service of replicas, and autoscalers that
change their number and size. What happens in it is made of stocks and movements with Skenario's
names; what it amounts to is in the `TrafficResult`.

>>> from kubescene.traffic import TrafficSpec, run
>>> run(TrafficSpec()).summary.requests
1700
"""

from kubescene.flows.records import RequestColumns, RequestOutcome
from kubescene.traffic.measures import TrafficSummary
from kubescene.traffic.results import Phase, TrafficResult, Verdict
from kubescene.traffic.runs import TrafficProgress, run
from kubescene.traffic.spec.fields import TrafficRun, TrafficSpec
from kubescene.traffic.spec.loading import load_run, parse_run, run_of, spec_of, to_object
from kubescene.traffic.world.decisions import AutoscalerDecision, SizeDecision
from kubescene.traffic.world.replicas import ReplicaBackend, ReplicaListener
from kubescene.traffic.world.worlds import ReplicaCount, ReplicaRecord, Utilization

__all__ = [
    "AutoscalerDecision",
    "Phase",
    "ReplicaBackend",
    "ReplicaCount",
    "ReplicaListener",
    "ReplicaRecord",
    "RequestColumns",
    "RequestOutcome",
    "SizeDecision",
    "TrafficProgress",
    "TrafficResult",
    "TrafficRun",
    "TrafficSpec",
    "TrafficSummary",
    "Utilization",
    "Verdict",
    "load_run",
    "parse_run",
    "run",
    "run_of",
    "spec_of",
    "to_object",
]
