"""What is not in a snapshot is said, and how to get it."""

from pathlib import Path

import pytest

from dumped import dump, shop
from kubescene.snapshots import read_snapshot
from kubescene.snapshots.completeness import COMMAND


@pytest.mark.parametrize(
    ("without", "said"),
    [
        ("nodes", "there is no Node in it: no pod has a place"),
        ("pods", "there is no Pod in it; if the cluster has some: nothing is placed"),
        ("persistentvolumes", "there is no PersistentVolume in it: bound claims are lost"),
        ("persistentvolumeclaims", "there is no PersistentVolumeClaim in it: pods that are placed"),
        ("storageclasses", "there is no StorageClass in it; if the cluster has some: no volume"),
        ("poddisruptionbudgets", "there is no PodDisruptionBudget in it; if the cluster has some"),
    ],
)
def test_a_kind_that_is_missing_is_named_with_what_follows(
    tmp_path: Path, without: str, said: str
) -> None:
    from dumped import LISTED

    file = tmp_path / "cluster.json"
    file.write_bytes(dump(shop(), *(kind for kind in LISTED if kind != without)))
    missing = read_snapshot(file).missing
    assert any(each.startswith(said) for each in missing), missing
    assert missing[-1] == f"what is missing comes along by: {COMMAND}"


def test_nothing_is_said_of_a_dump_that_has_all(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_bytes(dump(shop()))
    assert read_snapshot(file).missing == []
