"""Frames that several watches send are made once, and are always those of the change at hand."""

import pytest

from kubescene.api.records import make_record, versioned
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.apiserver.kubernetes import watch_events
from kubescene.apiserver.kubernetes.watch_events import SharedFrames
from kubescene.store import Store

PODS = GroupResource("", "pods")


def change(revision: int, kind: ChangeType = ChangeType.ADDED) -> Change:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{revision}"}}
    return Change(kind, make_record(PODS, versioned(pod, revision), revision), None, Store())


class Maker:
    """Counts what is made."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, change: Change) -> bytes:
        self.made += 1
        return f"{change.type} {change.record.name}".encode()


def frames_of(readers: int) -> tuple[SharedFrames, Maker]:
    frames, maker = SharedFrames(), Maker()
    frames.readers = readers
    return frames, maker


def test_a_change_is_encoded_once_for_all_readers() -> None:
    frames, maker = frames_of(3)
    first, second = change(1), change(2)
    assert [frames.of(first, maker) for _ in range(3)] == [b"ADDED p1"] * 3
    assert frames.of(second, maker) == b"ADDED p2"
    assert maker.made == 2


def test_for_a_single_reader_nothing_is_kept() -> None:
    frames, maker = frames_of(1)
    only = change(1)
    assert frames.of(only, maker) == frames.of(only, maker)
    assert maker.made == 2


def test_the_same_record_in_another_change_is_another_frame() -> None:
    frames, maker = frames_of(2)
    added = change(1)
    gone = Change(ChangeType.DELETED, added.record, None, Store())
    assert (frames.of(added, maker), frames.of(gone, maker)) == (b"ADDED p1", b"DELETED p1")


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_events, "MOST_BYTES", 30)
    frames, maker = frames_of(2)
    changes = [change(number) for number in range(1, 9)]
    for each in changes:
        frames.of(each, maker)
    assert len(frames._frames) <= 5
    assert frames.of(changes[-1], maker) == b"ADDED p8"
    assert maker.made == 8


def test_when_only_one_is_left_all_is_forgotten() -> None:
    frames, maker = frames_of(2)
    known = change(1)
    frames.of(known, maker)
    frames.leave()
    frames.of(known, maker)
    assert maker.made == 2
