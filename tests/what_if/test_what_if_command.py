"""``kubescene what-if``: what people and pipelines see of an answer."""

import json
from pathlib import Path

import pytest

from commands import kubescene as command
from commands import started
from dumped import dump, shop
from kubescene.snapshots import Snapshot, read_snapshot
from kubescene.snapshots.anonymizing import Names, anonymized
from kubescene.testing import make_pod
from kubescene.what_if import Answer, WhatIf

KEY = b"0123456789abcdef"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump") / "cluster.json"
    path.write_bytes(dump(shop()))
    return path


@pytest.fixture(scope="module")
def snapshot(file: Path) -> Snapshot:
    return read_snapshot(file)


def test_what_is_not_known_comes_first_then_the_sentence(file: Path) -> None:
    done = command("what-if", file, "lose", "zone=eu-1a", "--removed")
    assert done.returncode == 0, done.stderr
    first, *_ = lines = done.stdout.splitlines()
    assert first == "What this does not know"
    sentence = next(at for at, line in enumerate(lines) if line.startswith("If 2 nodes of zone"))
    assert lines.index("Workloads") > sentence > 0


def test_a_pipeline_gets_json_and_an_exit_code(file: Path) -> None:
    done = command(
        "what-if", file, "lose", "zone=eu-1a", "--removed", "--json", "--fail-on", "pending"
    )
    document = json.loads(done.stdout)
    assert document["measures"]["pending"] == 1
    assert document["failed"] == ["pending is 1, and pending fails"]
    assert done.returncode == 3
    assert "pending is 1, and pending fails" in done.stderr
    fine = command(
        "what-if", file, "lose", "zone=eu-1a", "--removed", "--fail-on", "pending>1,never_again"
    )
    assert fine.returncode == 0


def test_an_answer_is_a_page_that_fetches_nothing(file: Path, tmp_path: Path) -> None:
    page = tmp_path / "answer.html"
    done = command("what-if", file, "drain", "zone=eu-1a", "--report", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    for part in ("What this does not know", "How long 1 pod of Jobs", "2 nodes", "worker-3"):
        assert part.lower() in text.lower()
    assert "default-src &#x27;none&#x27;" in text
    assert "<script src" not in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["melt"], "there is no question 'melt'; there are: lose, drain, shrink"),
        (["lose"], "lose which nodes? Say it such as: lose zone=eu-1a"),
        (["lose", "eu-1a"], "'eu-1a' names no nodes: say zone=Z, pool=P, node=N or K=V"),
        (["drain", "node=worker-0", "--removed"], "--removed is for lose, not drain"),
        (["shrink", "--keep", "half"], "--keep is 'half': say a share such as 10%"),
        (["upgrade", "--surge", "0"], "no node could ever be replaced"),
        (["upgrade", "--boot", "soon"], "--boot: "),
        (["upgrade", "--moves", "3"], "--moves is for balance, not upgrade"),
        (["balance", "--thresholds", "20"], "--thresholds is '20': say two shares: 20,50"),
        (["balance", "--thresholds", "60,50"], "--thresholds: low and high are shares"),
        (["balance", "--policy", "All"], "there is no policy 'All'; there are: LowNodeUtil"),
        (["fit"], "fit what? Name a file of objects by -f"),
        (["schedule", "now"], "schedule takes no 'now'"),
        (["explain"], "explain takes one pod: explain pod NAMESPACE/NAME"),
        (["lose", "zone=eu-1a", "--for", "soon"], "--for: "),
        (["shrink", "--fail-on", "cost"], "--fail-on: the answer has no cost; it has: nodes"),
        (["shrink", "--fail-on", "9"], "--fail-on: '9' is no NAME, NAME>NUMBER or NAME>=NUMBER"),
    ],
)
def test_a_question_that_nobody_understands_is_refused(
    file: Path, arguments: list[str], complaint: str
) -> None:
    done = command("what-if", file, *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_processes_and_hash_seeds_give_the_same_bytes(file: Path) -> None:
    told = [
        started("what-if", file, "lose", "zone=eu-1a", "--json", PYTHONHASHSEED=seed).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1] != ""


def test_an_anonymised_snapshot_has_the_same_answers(snapshot: Snapshot) -> None:
    names, other = Names(KEY, snapshot.objects), anonymized(snapshot, KEY)
    worker, zone = names.text("worker-0"), names.text("eu-1a")
    pod = make_pod("p").cpu("2").build()
    plain = asked_all(snapshot.what_if, "worker-0", "eu-1a", "shop/huge", pod)
    huge = f"{names.text('shop')}/{names.text('huge')}"
    renamed = asked_all(other.what_if, worker, zone, huge, pod)
    for mine, theirs in zip(plain, renamed, strict=True):
        assert mine.measures == theirs.measures, mine.question


def asked_all(
    what_if: WhatIf, node: str, zone: str, pod: str, more: dict[str, object]
) -> list[Answer]:
    return [
        what_if.lose(f"zone={zone}"),
        what_if.lose(f"zone={zone}", removed=True),
        what_if.drain(f"node={node}"),
        what_if.explain(pod),
        what_if.fit([more]),
    ]


def test_more_nodes_never_make_more_pods_wait(snapshot: Snapshot) -> None:
    waiting = []
    nodes = [obj for obj in snapshot.objects if obj["kind"] == "Node"]
    for more in range(3):
        twins = [
            {**node, "metadata": {**node["metadata"], "name": f"twin-{at}", "uid": f"twin-{at}"}}
            for at, node in enumerate(nodes[:more])
        ]
        larger = Snapshot([*snapshot.objects, *twins], snapshot.taken_at)
        waiting.append(larger.what_if.lose("zone=eu-1b", removed=True).measures["pending"])
    assert waiting == sorted(waiting, reverse=True)
