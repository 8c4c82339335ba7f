"""What plugins that look at many nodes at a time are given, and answer with."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.intp]
"""Positions in the `NodeTable`, which holds the nodes in snapshot order."""

Codes: TypeAlias = NDArray[np.int64]
"""One verdict per row: 0 passes, anything else is a number the plugin can explain."""

Scores: TypeAlias = NDArray[np.int64]
"""One score per row."""
