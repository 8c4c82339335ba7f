"""Programs that Kubescene starts: their output is read, their last words kept, their end seen to.

Autoscaler plugins and controllers outside are such programs.
"""

import os


def is_alive(process: int) -> bool:
    """Whether a process of this machine has not ended, whoever it belongs to."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
