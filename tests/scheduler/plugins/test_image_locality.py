"""ImageLocality: worked numbers, names, and numbers of nodes that grow stale."""

import copy
from typing import Any

import pytest

from kubescene.clock import Streams
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.plugins.image_locality import ImageLocality, normalized
from kubescene.testing.builders import make_node, make_pod, merged
from kubescene.types import JsonObject
from scheduler.tables import Table

MIB = 1 << 20


def holding(name: str, **sizes: int) -> JsonObject:
    images = [{"names": [f"{image}:latest"], "sizeBytes": size} for image, size in sizes.items()]
    return merged(make_node(name).build(), {"status": {"images": images}})


def running(*images: str, init: tuple[str, ...] = (), volumes: tuple[str, ...] = ()) -> JsonObject:
    spec: JsonObject = {"containers": [{"name": i, "image": i} for i in images]}
    spec["initContainers"] = [{"name": i, "image": i} for i in init]
    spec["volumes"] = [{"name": v, "image": {"reference": v}} for v in volumes]
    return merged(make_pod("p").build(), {"spec": spec})


def scores(table: Table, pod: JsonObject, plugin: ImageLocality | None = None) -> list[int]:
    """In both forms."""
    table.nodes.refresh()
    plugin = plugin or ImageLocality(table.nodes)
    info, state = table.pod(pod), CycleState()
    one = [plugin.score(state, info, node) for node in table.nodes.infos]
    assert plugin.score_nodes(state, info, table.nodes, table.rows).tolist() == one
    assert plugin.concerns_scoring(info.signature) or not any(one)
    return one


def test_sc_5_worked_number() -> None:
    table = Table(holding("a", big=1000 * MIB), *(make_node(name).build() for name in "bcd"))
    assert scores(table, running("big")) == [23, 0, 0, 0]


@pytest.mark.parametrize(
    ("pod", "score"),
    [
        pytest.param(running("big"), 100, id="SC-5 clamped above"),
        pytest.param(running("small"), 0, id="SC-5 clamped below"),
        pytest.param(running("big", "none"), 49, id="SC-5 highest counts containers"),
        pytest.param(running("none", init=("big",)), 49, id="SC-5 init containers"),
        pytest.param(running("none", volumes=("big",)), 100, id="SC-5 volumes add, do not count"),
        pytest.param(running("big", "big"), 100, id="SC-5 twice counts twice"),
        pytest.param(running("big:v2"), 0, id="SC-5 another tag"),
    ],
)
def test_sc_5_what_counts(pod: JsonObject, score: int) -> None:
    assert scores(Table(holding("a", big=1000 * MIB, small=22 * MIB)), pod) == [score]


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1", "nginx:1"),
        ("host:5000/nginx", "host:5000/nginx:latest"),
        ("host:5000/nginx:1", "host:5000/nginx:1"),
        ("a/b@sha256:abc", "a/b@sha256:abc"),
    ],
)
def test_sc_5_names_without_a_tag_mean_the_latest(name: str, full: str) -> None:
    assert normalized(name) == full


def test_n_7_the_size_is_that_of_the_first_node_that_told_it() -> None:
    table = Table(holding("a", big=400 * MIB), holding("b", big=900 * MIB))
    assert len(set(scores(table, running("big")))) == 1
    assert table.nodes.images.size("big:latest") == 400 * MIB
    table.set_node(holding("a"))
    assert table.nodes.images.size("big:latest") == 400 * MIB
    # Every update of a node takes its images away and brings them again.
    table.set_node(holding("b", big=900 * MIB))
    assert table.nodes.images.size("big:latest") == 900 * MIB
    table.set_node(holding("b", big=800 * MIB))
    assert table.nodes.images.size("big:latest") == 800 * MIB


def test_n_7_numbers_of_nodes_grow_stale_where_nothing_happens() -> None:
    table = Table(holding("a", big=1000 * MIB), *(make_node(name).build() for name in "bcd"))
    plugin, pod = ImageLocality(table.nodes), running("big")
    assert scores(table, pod, plugin) == [23, 0, 0, 0]
    table.set_node(holding("b", big=1000 * MIB))
    half = (500 - 23) * 100 // (1000 - 23)
    assert scores(table, pod, plugin) == [23, half, 0, 0]
    assert scores(table, pod) == [23, half, 0, 0]
    there = table.add(make_pod("x").build(), "a")
    assert scores(table, pod, plugin) == [half, half, 0, 0]
    table.set_node(holding("c", big=1000 * MIB))
    # An update that changes no number of the node renews it as well.
    table.nodes.update_pod(there, table.again(there), "a")
    three = (750 - 23) * 100 // (1000 - 23)
    assert scores(table, pod, plugin) == [three, half, three, 0]
    assert scores(table, pod) == [three, half, three, 0]


def test_n_7_two_changes_between_two_cycles_are_one() -> None:
    table = Table(*(make_node(name).build() for name in "abcd"))
    table.set_node(holding("a", big=1000 * MIB))
    table.set_node(holding("b", big=1000 * MIB))
    assert len({*scores(table, running("big"))[:2]}) == 1


def test_n_7_a_renewal_before_the_change_of_another_node() -> None:
    table = Table(holding("a", big=1000 * MIB), *(make_node(name).build() for name in "bcd"))
    there = table.add(make_pod("x").build(), "a")
    plugin, pod = ImageLocality(table.nodes), running("big")
    assert scores(table, pod, plugin)[0] == 23
    table.nodes.update_pod(there, table.again(there), "a")
    table.set_node(holding("b", big=1000 * MIB))
    half = (500 - 23) * 100 // (1000 - 23)
    assert scores(table, pod) == [half, half, 0, 0]


class Cloned:
    """What upstream does, done plainly: copy the numbers of a node at the first cycle after it
    changed.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.images: dict[str, dict[str, int]] = {}
        self.copies: dict[str, dict[str, int]] = {}
        self.dirty: set[str] = set()

    def set_node(self, name: str, sizes: dict[str, int]) -> None:
        self.table.set_node(holding(name, **sizes))
        self.images[name] = sizes
        self.dirty.add(name)

    def remove(self, name: str) -> None:
        self.table.nodes.remove_node(name)
        self.images.pop(name, None)
        self.copies.pop(name, None)
        self.dirty.discard(name)

    def cycle(self) -> None:
        self.table.nodes.refresh()
        for name in self.dirty:
            self.copies[name] = {
                image: sum(image in held for held in self.images.values())
                for image in self.images[name]
            }
        self.dirty.clear()

    def score(self, name: str) -> int:
        count = self.copies[name].get("big", 0)
        total = int(1000.0 * MIB * (count / len(self.table.nodes)))
        return 100 * (min(max(total, 23 * MIB), 1000 * MIB) - 23 * MIB) // (977 * MIB)


@pytest.mark.parametrize("seed", range(40))
def test_n_7_equals_copying_every_node(seed: int) -> None:
    random = Streams(seed).stream("images")
    table = Table()
    model, plugin, pod = Cloned(table), ImageLocality(table.nodes), running("big")
    placed: dict[str, Any] = {}
    for step in range(120):
        name, what = f"n{random.below(6)}", random.below(6)
        if what <= 1:
            model.set_node(name, {"big": 1000 * MIB} if random.below(2) else {})
        elif what == 2 and random.below(3) == 0 and name in model.images:
            if name in placed:
                table.nodes.remove_pod(placed.pop(name), name)
            model.remove(name)
        elif what == 3 and name in model.images:
            if name in placed:
                again = table.again(placed[name])
                table.nodes.update_pod(placed[name], again, name)
                placed[name] = again
            else:
                placed[name] = table.add(make_pod(f"p{step}").build(), name)
            model.dirty.add(name)
        elif model.images:
            model.cycle()
            info, state = table.pod(pod), CycleState()
            want = [model.score(each) for each in table.nodes.names]
            got = plugin.score_nodes(state, info, table.nodes, table.rows).tolist()
            assert got == want, step
            fork = copy.deepcopy(table.nodes)
            other = ImageLocality(fork)
            assert other.score_nodes(state, info, fork, table.rows).tolist() == want


def test_numbers_that_grew_stale_survive_that_all_nodes_go() -> None:
    table = Table(holding("a", x=1), holding("b", y=1))
    table.set_node(holding("c", x=1))
    table.nodes.refresh()
    for name in "abc":
        table.nodes.remove_node(name)
    table.nodes.refresh()
    table.set_node(holding("d", x=1))
    table.nodes.refresh()
    assert table.nodes.images.nodes_with("x:latest", 0, int(table.nodes.versions[0])) == 1


def test_nodes_without_the_image_do_not_concern_it() -> None:
    table = Table(holding("a", big=MIB))
    plugin = ImageLocality(table.nodes)
    assert plugin.concerns_scoring(table.pod(running("big")).signature)
    assert not plugin.concerns_scoring(table.pod(running("other")).signature)
    version = plugin.concern_version
    table.set_node(holding("a", other=MIB))
    assert plugin.concern_version > version
