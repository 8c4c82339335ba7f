"""Tallies for people."""

from collections.abc import Iterator

from kubescene.testing.goldens.comparing import Tally


def lines(tally: Tally) -> Iterator[str]:
    """One family: a heading, a line per aspect, the first differences."""
    verdict = "equal" if tally.is_equal else f"{tally.differences:,} differences"
    yield (
        f"{tally.family}: {tally.equal_cases:,} of {tally.cases:,} cases equal, "
        f"{tally.attempts:,} {tally.unit}, {verdict} ({tally.seconds:.1f} s)"
    )
    for aspect, compared, equal in tally.aspects():
        mark = "" if compared == equal else "   <-- differs"
        yield f"  {aspect:22} {equal:>9,} / {compared:,}{mark}"
    for difference in tally.first:
        yield f"  {difference}"
    if left := tally.differences - len(tally.first):
        yield f"  ... and {left:,} more differences (--differences N shows more)"
