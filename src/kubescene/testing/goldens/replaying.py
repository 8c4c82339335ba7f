"""From files to tallies: every golden is replayed in a world of its own, then forgotten."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from time import process_time

from kubescene.errors import ConfigurationError
from kubescene.testing.goldens.comparing import Aspect, Comparison, Tally
from kubescene.testing.goldens.configuring import options_of
from kubescene.testing.goldens.isolated import IsolatedReplay
from kubescene.testing.goldens.profiles import compare_profiles
from kubescene.testing.goldens.queue_mode import QueueReplay
from kubescene.testing.goldens.reading import Golden, read_goldens


def replay_files(paths: Iterable[Path], *, case: str = "", kept: int = 10) -> Iterator[Tally]:
    """The tally of each family, as soon as its file is done; ``case`` picks one golden by id."""
    for path in paths:
        tallies: dict[str, Tally] = {}
        for golden in read_goldens(path):
            if case and golden.id != case:
                continue
            tally = tallies.get(golden.family)
            if tally is None:
                tally = tallies[golden.family] = Tally(golden.family, kept=kept)
            replay(golden, tally)
        yield from tallies.values()


def replay(golden: Golden, tally: Tally) -> None:
    """Replay one golden and count what comes of it."""
    started = process_time()
    before = tally.differences
    tally.cases += 1
    _replay(golden, tally)
    tally.equal_cases += tally.differences == before
    tally.seconds += process_time() - started


def _replay(golden: Golden, tally: Tally) -> None:
    comparison = Comparison(golden.id, tally)
    theirs = golden.result.get("configError", "")
    mode = QueueReplay if "steps" in golden.case else IsolatedReplay
    try:
        options = options_of(golden.case)
        world = mode(golden, options, tally)
    except ConfigurationError as error:
        comparison.equal(Aspect.CONFIG_ERROR, str(error), theirs)
        return
    except Exception as error:
        # Whatever our scheduler raises is a difference.
        comparison.failed(Aspect.REPLAYED, f"{type(error).__name__}: {error}", "")
        return
    if theirs:
        comparison.equal(Aspect.CONFIG_ERROR, "accepted", theirs)
        return
    compare_profiles(golden, options, comparison)
    world.run()
