"""From files to tallies: every golden is replayed in a world of its own, then forgotten."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from time import process_time

from kubescene.testing.goldens.comparing import Tally
from kubescene.testing.goldens.formats import format_of
from kubescene.testing.goldens.reading import read_goldens
from kubescene.testing.goldens.recordings import Golden


def replay_files(paths: Iterable[Path], *, case: str = "", kept: int = 10) -> Iterator[Tally]:
    """The tally of each family, as soon as its file is done; ``case`` picks one golden by id."""
    for path in paths:
        tallies: dict[str, Tally] = {}
        for golden in read_goldens(path):
            if case and golden.id != case:
                continue
            tally = tallies.get(golden.family)
            if tally is None:
                tally = tallies[golden.family] = _tally(golden, kept)
            replay(golden, tally)
        yield from tallies.values()


def replay(golden: Golden, tally: Tally) -> None:
    """Replay one golden and count what comes of it."""
    started = process_time()
    before = tally.differences
    tally.cases += 1
    format_of(golden.case).load().replay(golden, tally)
    tally.equal_cases += tally.differences == before
    tally.seconds += process_time() - started


def _tally(golden: Golden, kept: int) -> Tally:
    return Tally(golden.family, unit=format_of(golden.case).load().UNIT, kept=kept)
