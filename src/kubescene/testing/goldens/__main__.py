"""``python -m kubescene.testing.goldens FILE.jsonl.gz...``: compare with Kubernetes.

Exit code 0: all equal; 1: something differs; 2: a file is not what it should be.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from kubescene.testing.goldens.comparisons import GoldenTally, lines
from kubescene.testing.goldens.recordings import GoldenFormatError
from kubescene.testing.goldens.replays import replay_files


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    tallies: list[GoldenTally] = []
    try:
        replayed = replay_files(
            options.files,
            case=options.case,
            kept=options.differences,
            plain=options.plain,
            objects=options.objects,
        )
        for tally in replayed:
            tallies.append(tally)
            if not options.json:
                print("\n".join(lines(tally)), flush=True)
    except GoldenFormatError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not tallies:
        wanted = f"no case {options.case!r} in these files" if options.case else "no goldens"
        print(f"error: {wanted}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(_document(tallies), indent=2, default=str))
    return 0 if all(tally.is_equal for tally in tallies) else 1


def _document(tallies: Sequence[GoldenTally]) -> dict[str, object]:
    return {
        "equal": all(tally.is_equal for tally in tallies),
        "families": {name: tally.to_dict() for name, tally in _named(tallies)},
        "differences": [each.to_dict() for tally in tallies for each in tally.first],
    }


def _named(tallies: Sequence[GoldenTally]) -> Iterator[tuple[str, GoldenTally]]:
    """Families by name; a name that several files have is numbered from the second on."""
    seen: Counter[str] = Counter()
    for tally in tallies:
        seen[tally.family] += 1
        times = seen[tally.family]
        yield (tally.family if times == 1 else f"{tally.family} ({times})"), tally


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kubescene.testing.goldens",
        description="Replay recorded decisions of Kubernetes and compare them with ours.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl.gz")
    parser.add_argument("--case", default="", metavar="ID", help="replay this case only")
    parser.add_argument(
        "--differences",
        type=int,
        default=10,
        metavar="N",
        help="how many differences to show per family (default: 10)",
    )
    parser.add_argument("--plain", action="store_true", help="let worlds play without shortcuts")
    parser.add_argument(
        "--objects",
        action="store_true",
        help="let pod autoscalers decide about objects of an API server, as their controllers do",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    return parser


if __name__ == "__main__":
    sys.exit(main())
