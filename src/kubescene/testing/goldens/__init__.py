"""Replaying recorded decisions of Kubernetes: its goldens against our parts.

``python -m kubescene.testing.goldens FILE.jsonl.gz...`` replays files and prints what was compared
and what differs; `replay` does the same from Python. A golden is one scenario and all that was
decided on it; which format it has, and so who replays it, is told by its case (`replays`).

The replay of kube-scheduler drives the real scheduler over a real store; it knows the form of the
recordings and what an API server, a volume controller and a device driver did in them
(`environment`), but no rule of scheduling.
"""

from kubescene.testing.goldens.comparisons import Aspect, GoldenDifference, GoldenTally
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.testing.goldens.replays import read_goldens, replay, replay_files

__all__ = [
    "Aspect",
    "Golden",
    "GoldenDifference",
    "GoldenFormatError",
    "GoldenTally",
    "read_goldens",
    "replay",
    "replay_files",
]
