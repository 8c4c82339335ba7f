"""The lane: like pods are decided about, bound and reported Running in one function.

A pod takes some 700 calls from the queue to ``Running``: a turn of the scheduler, a write, a turn
of the kubelet, another write, and everybody told of each. For pods that are like one that has just
gone that way, all of it is known but the node. The lane asks the scheduler for that, and writes
what the long way would have left behind: both revisions, both facts, the pod on its node.

The long way is the rule (`kubescene.scenario.engine.rest`). `guard` lists what has to be so that
nobody can see the difference; where it is not so, the lane is left between two pods, and the long
way goes on from there. `Lane.counts` says how many pods came through, and why it was left.
"""

from kubescene.lane.creations import CreateAlike, Wish
from kubescene.lane.lane import CHUNK, CHUNK_SEEN, Lane, Passage

__all__ = ["CHUNK", "CHUNK_SEEN", "CreateAlike", "Lane", "Passage", "Wish"]
