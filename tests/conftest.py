"""What every test may use: a fresh cluster, and ``--update`` for expected output.

``pytest --update`` rewrites expected files (such as ``examples/*/expected.txt``) from what the code
does now; read the diff before you commit it. Which tests are quick is said by `marks`.
"""

import os
import signal
import sys

import pytest

# Hundreds of commands are started here, and each would compile the whole package if nobody might
# keep what was compiled: first of all, and for all of them.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from kubescene.cluster import ClusterWorld  # noqa: E402

pytest_plugins = ["marks"]

# Who is started in the background of a script inherits that Ctrl-C is ignored, and so would every
# command that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="rewrite expected output files from what is"
    )


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether expected files are to be rewritten rather than compared."""
    return bool(request.config.getoption("--update"))


@pytest.fixture
def cluster() -> ClusterWorld:
    """An empty cluster; ``settle()`` runs every built-in controller and the scheduler."""
    return ClusterWorld()
