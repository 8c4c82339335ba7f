"""The world as Skenario has it: every request, sample and tick is a movement, its rules included.

For comparing with it, and for reading what was written about it. What is wrong with these rules is
mended in `kubescene.traffic.world.fixed`; here it is kept on purpose. Only chance differs: it comes
from the run's seed, so that a run can be repeated.
"""

from kubescene.traffic.faithful.world import FaithfulWorld

__all__ = ["FaithfulWorld"]
