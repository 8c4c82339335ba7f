"""Outages: nodes that fall silent, are gone or are reclaimed."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.builtin.outages.definition import ALL, DEFINITION
from kubescene.testing import make_node, make_pod, make_replica_set
from kubescene.types import JsonObject


def outage(name: str = "o", what: str = "NodesSilent", **spec: object) -> JsonObject:
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "Outage",
        "metadata": {"name": name},
        "spec": {"what": what, "nodes": {}, **spec},
    }


def conditions(cluster: ClusterWorld, node: str) -> dict[str, tuple[str, str]]:
    found = cluster.get("nodes", node)["status"]["conditions"]
    return {each["type"]: (each["status"], each.get("reason", "")) for each in found}


def ready(cluster: ClusterWorld, node: str) -> str:
    return conditions(cluster, node)["Ready"][0]


def status(cluster: ClusterWorld, name: str = "o") -> JsonObject:
    found: JsonObject = cluster.get("outages", name)["status"]
    return found


def nodes(cluster: ClusterWorld, count: int = 1) -> None:
    for number in range(count):
        cluster.create(make_node(f"n{number}").cpu("4").memory("8Gi"))
    cluster.settle()


def pod_is_ready(cluster: ClusterWorld, name: str) -> bool:
    listed = cluster.get("pods", name)["status"].get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in listed)


def test_a_silent_node_is_noticed_after_the_grace_period_and_comes_back(
    cluster: ClusterWorld,
) -> None:
    nodes(cluster)
    cluster.create(make_pod("a").cpu("1"))
    cluster.settle().create(outage(**{"for": "2m"}))
    cluster.advance("49s")
    assert ready(cluster, "n0") == "True"
    assert pod_is_ready(cluster, "a")
    cluster.advance("1s")
    assert conditions(cluster, "n0") == {
        "Ready": ("Unknown", "NodeStatusUnknown"),
        "MemoryPressure": ("Unknown", "NodeStatusNeverUpdated"),
        "DiskPressure": ("Unknown", "NodeStatusNeverUpdated"),
        "PIDPressure": ("Unknown", "NodeStatusNeverUpdated"),
    }
    assert not pod_is_ready(cluster, "a")
    cluster.advance("69s")
    assert status(cluster)["phase"] == "Running"
    cluster.advance("1s")
    assert status(cluster)["phase"] == "Ended"
    assert conditions(cluster, "n0")["Ready"] == ("True", "KubeletReady")
    assert conditions(cluster, "n0")["PIDPressure"] == ("False", "KubeletHasSufficientPID")
    assert not cluster.get("nodes", "n0")["spec"].get("taints")
    assert pod_is_ready(cluster, "a")


def test_nothing_starts_on_a_silent_node_before_it_is_noticed(cluster: ClusterWorld) -> None:
    nodes(cluster)
    cluster.create(outage(**{"for": "30s"}))
    cluster.settle().create(make_pod("a").cpu("1"))
    cluster.advance("29s")
    pod = cluster.get("pods", "a")
    assert (pod["spec"]["nodeName"], pod["status"]["phase"]) == ("n0", "Pending")
    cluster.advance("1s")
    assert cluster.get("pods", "a")["status"]["phase"] == "Running"
    assert ready(cluster, "n0") == "True"
    cluster.advance("1m")
    assert ready(cluster, "n0") == "True"


def test_deleting_an_outage_takes_it_back_but_not_from_another_one(cluster: ClusterWorld) -> None:
    nodes(cluster)
    cluster.create(outage("one"))
    cluster.create(outage("two"))
    cluster.advance("1m").delete("outages", "one")
    cluster.settle()
    assert ready(cluster, "n0") == "Unknown"
    cluster.delete("outages", "two")
    cluster.settle()
    assert ready(cluster, "n0") == "True"


def test_a_node_that_was_patched_to_unknown_by_hand_stays_so(cluster: ClusterWorld) -> None:
    nodes(cluster)
    unknown = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    cluster.patch("nodes", "n0", unknown, subresource="status")
    cluster.advance("5m")
    assert ready(cluster, "n0") == "Unknown"


def test_a_short_outage_does_not_bring_a_node_back_that_fails_later(cluster: ClusterWorld) -> None:
    nodes(cluster)
    cluster.create(outage(**{"for": "10s"}))
    cluster.advance("1m")
    unknown = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    cluster.patch("nodes", "n0", unknown, subresource="status")
    cluster.patch("nodes", "n0", {"metadata": {"labels": {"a": "b"}}})
    cluster.advance("1m")
    assert ready(cluster, "n0") == "Unknown"


def test_an_outage_begins_after_a_while(cluster: ClusterWorld) -> None:
    nodes(cluster)
    cluster.create(outage(after="1m"))
    cluster.advance("59s")
    assert status(cluster) == {"phase": "Pending", "observedGeneration": 1}
    cluster.advance("51s")
    assert ready(cluster, "n0") == "Unknown"


def test_nodes_are_gone_at_once(cluster: ClusterWorld) -> None:
    nodes(cluster, 3)
    cluster.create(outage(what="NodesGone", count=2))
    cluster.settle()
    assert len(cluster.list("nodes")) == 1
    assert len(status(cluster)["affected"]) == 2


def test_a_reclaimed_node_has_notice_and_then_is_gone(cluster: ClusterWorld) -> None:
    nodes(cluster)
    cluster.create(outage(what="SpotReclaim"))
    cluster.advance("119s")
    assert [t["key"] for t in cluster.get("nodes", "n0")["spec"]["taints"]] == [
        "kubescene.dev/spot-reclaim"
    ]
    cluster.advance("1s")
    assert len(cluster.list("nodes")) == 0
    assert status(cluster)["phase"] == "Ended"


def test_a_notice_is_taken_back_with_its_outage(cluster: ClusterWorld) -> None:
    nodes(cluster)
    cluster.create(outage(what="SpotReclaim"))
    cluster.advance("1m").delete("outages", "o")
    cluster.advance("5m")
    assert not cluster.get("nodes", "n0")["spec"].get("taints")


def drawn(seed: int, order: list[str]) -> list[str]:
    cluster = ClusterWorld(ClusterOptions(seed=seed))
    for name in order:
        cluster.create(make_node(name))
    cluster.create(outage("other", share=0.5))
    cluster.create(outage(share=0.25))
    cluster.settle()
    affected: list[str] = status(cluster)["affected"]
    return affected


def test_a_share_is_drawn_by_seed_and_name_not_by_order_of_creation() -> None:
    names = [f"n{number:02}" for number in range(20)]
    draws = {tuple(drawn(seed, names)) for seed in range(5)}
    assert len(draws) > 1
    assert {len(each) for each in draws} == {5}
    assert drawn(1, names) == drawn(1, names[::-1])


def test_forks_and_split_advances_come_to_the_same(cluster: ClusterWorld) -> None:
    nodes(cluster, 4)
    cluster.create(outage(share=0.5, **{"for": "10m"}))
    fork = cluster.fork()
    cluster.advance("12m")
    for _ in range(12):
        fork.advance("1m")
    assert [*map(dict, fork.list("nodes"))] == [*map(dict, cluster.list("nodes"))]


OUTAGES = st.lists(
    st.sampled_from(
        [
            ("NodesSilent", {"for": "4m", "share": 0.5}),
            ("NodesSilent", {"after": "30s"}),
            ("SpotReclaim", {"count": 1, "notice": "90s"}),
            ("NodesGone", {"count": 1, "after": "2m"}),
            ("ImagePull", {"pullTime": "40s", "for": "3m"}),
            ("CpuStolen", {"cpuShare": 0.5, "after": "1m", "for": "1m"}),
        ]
    ),
    min_size=1,
    max_size=3,
    unique_by=str,
)


@settings(max_examples=25, deadline=None)
@given(
    outages=OUTAGES,
    cuts=st.lists(st.integers(1, 300), min_size=1, max_size=6),
    fork_at=st.integers(0, 5),
)
def test_however_time_is_cut_and_worlds_are_forked_outages_do_the_same(
    outages: list[tuple[str, JsonObject]], cuts: list[int], fork_at: int
) -> None:
    cluster = ClusterWorld(ClusterOptions(events=True, seed=3))
    nodes(cluster, 4)
    cluster.create(make_replica_set("web").replicas(5))
    cluster.settle()
    for number, (what, spec) in enumerate(outages):
        cluster.create(outage(f"o{number}", what, **spec))
    whole = cluster.fork()
    whole.advance(float(sum(cuts)))
    for number, cut in enumerate(cuts):
        if number == fork_at:
            cluster = cluster.fork()
        cluster.advance(float(cut))
    for kind in ("nodes", "pods", "outages", "replicasets", "events"):
        assert [*map(dict, cluster.list(kind))] == [*map(dict, whole.list(kind))], kind


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"what": "MetricsGap", "cpuShare": 0.1}, "cpuShare: only CpuStolen has it"),
        ({"nodes": None}, "nodes: NodesSilent needs a selector"),
        ({"what": "ImagePull"}, "pullTime: ImagePull needs pullTime"),
        ({"what": "ImagePull", "pullTime": "long"}, "pullTime: 'long' is not a duration"),
        ({"what": "ImagePull", "pullError": "x", "pods": None, "cpuShare": 0.1}, "only CpuStolen"),
        (
            {
                "what": "ImagePull",
                "pullError": "x",
                "pods": {"matchExpressions": [{"key": "a", "operator": "In"}]},
            },
            "pods: ",
        ),
        ({"what": "CpuStolen"}, "cpuShare: CpuStolen needs a share above 0 and below 1"),
        ({"what": "CpuStolen", "cpuShare": 1}, "above 0 and below 1, not 1"),
        ({"what": "CpuStolen", "cpuShare": -0.5}, "above 0 and below 1, not -0.5"),
        ({"groups": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "groups: "),
        ({"what": "NoCapacity"}, "groups: NoCapacity needs a selector"),
        ({"what": "NoCapacity", "groups": {}}, "nodes: NoCapacity is about NodeGroups"),
        ({"code": "x"}, "code: only NoCapacity and BootsFail have it, and this is NodesSilent"),
        ({"pods": {}}, "pods: only ImagePull has it, and this is NodesSilent"),
        ({"share": 0.5, "count": 1}, "only one of share and count"),
        ({"share": 0}, "share: must be above 0"),
        ({"share": 1.5}, "share: must be above 0"),
        ({"for": "-1m"}, "for: "),
        ({"after": "soon"}, "after: "),
        ({"what": "NodesGone", "for": "1m"}, "for: nodes do not come back"),
        ({"notice": "1m"}, "notice: only SpotReclaim"),
        ({"nodes": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "nodes: "),
    ],
)
def test_an_outage_that_makes_no_sense_is_refused_in_its_status(
    cluster: ClusterWorld, spec: JsonObject, told: str
) -> None:
    nodes(cluster)
    cluster.create(outage(**spec))
    cluster.advance("2m")
    assert status(cluster)["phase"] == "Refused"
    assert told in status(cluster)["message"]
    assert ready(cluster, "n0") == "True"


def silent(cluster: ClusterWorld) -> set[str]:
    listed = cluster.list("nodes")
    return {
        node["metadata"]["name"]
        for node in listed
        if (node["metadata"].get("annotations") or {}).get("kubescene.dev/kubelet") == "stopped"
    }


def test_a_refused_outage_begins_when_it_was_mended(cluster: ClusterWorld) -> None:
    nodes(cluster)
    cluster.create(outage(share=2))
    cluster.settle().patch("outages", "o", {"spec": {"share": 1}})
    cluster.settle()
    assert silent(cluster) == {"n0"}
    assert status(cluster)["observedGeneration"] == 2
    assert status(cluster)["message"] == "nodes: all 1 are affected"


def test_a_longer_or_shorter_outage_ends_so_long_after_its_beginning(cluster: ClusterWorld) -> None:
    nodes(cluster, 2)
    cluster.create(outage(count=1, **{"for": "2m"}))
    cluster.advance("1m").patch("outages", "o", {"spec": {"for": "5m"}})
    cluster.advance("3m59s")
    assert status(cluster)["phase"] == "Running"
    cluster.advance("1s")
    assert status(cluster)["phase"] == "Ended"
    assert not silent(cluster)

    cluster.create(outage("p", count=1, **{"for": "10m"}))
    cluster.advance("1m").patch("outages", "p", {"spec": {"for": "30s"}})
    cluster.settle()
    assert (status(cluster, "p")["phase"], silent(cluster)) == ("Ended", set())
    assert status(cluster, "p")["ends"] == "2026-01-01T00:06:00Z"


def test_an_outage_without_end_is_given_one_and_loses_it_again(cluster: ClusterWorld) -> None:
    nodes(cluster, 2)
    cluster.create(outage(count=1))
    cluster.advance("1m").patch("outages", "o", {"spec": {"for": "2m"}})
    cluster.settle().patch("outages", "o", {"spec": {"for": None}})
    cluster.advance("5m")
    assert (status(cluster)["phase"], len(silent(cluster))) == ("Running", 1)
    assert "ends" not in status(cluster)


def test_a_larger_share_has_all_of_a_smaller_one_and_goes_back_to_it(cluster: ClusterWorld) -> None:
    nodes(cluster, 10)
    cluster.create(outage(share=0.3))
    cluster.advance("1m")
    few = silent(cluster)
    cluster.patch("outages", "o", {"spec": {"share": 0.6}})
    cluster.advance("1m")
    many = silent(cluster)
    assert (len(few), len(many), few < many) == (3, 6, True)
    cluster.patch("outages", "o", {"spec": {"share": 0.3}})
    cluster.settle()
    assert silent(cluster) == few == set(status(cluster)["affected"])
    assert [ready(cluster, name) for name in sorted(many - few)] == ["True"] * 3


def test_another_selector_lets_nodes_go_unless_another_outage_holds_them(
    cluster: ClusterWorld,
) -> None:
    for name, zone in (("a0", "a"), ("a1", "a"), ("b0", "b")):
        cluster.create(make_node(name).label(zone=zone))
    cluster.settle().create(outage(nodes={"matchLabels": {"zone": "a"}}))
    held = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    cluster.create(outage("holds", nodes=held, count=1))
    cluster.settle()
    assert silent(cluster) == {"a0", "a1"}
    cluster.patch("outages", "o", {"spec": {"nodes": {"matchLabels": {"zone": "b"}}}})
    cluster.settle()
    assert silent(cluster) == {"b0", *status(cluster, "holds")["affected"]}


def test_a_change_that_makes_no_sense_leaves_an_outage_as_it_was(cluster: ClusterWorld) -> None:
    nodes(cluster, 2)
    cluster.create(outage(count=1, **{"for": "2m"}))
    cluster.settle().patch("outages", "o", {"spec": {"what": "SpotReclaim", "for": None}})
    cluster.settle()
    assert "what: it cannot become something else" in status(cluster)["message"]
    cluster.patch("outages", "o", {"spec": {"what": "NodesSilent", "for": "soon"}})
    cluster.settle()
    assert "for: 'soon' is not a duration" in status(cluster)["message"]
    assert "it goes on as it was" in status(cluster)["message"]
    assert len(silent(cluster)) == 1
    cluster.advance("2m")
    assert (status(cluster)["phase"], silent(cluster)) == ("Ended", set())


def test_nodes_that_come_while_a_change_makes_no_sense_wait_for_one_that_does(
    cluster: ClusterWorld,
) -> None:
    nodes(cluster, 1)
    cluster.create(outage(what="CpuStolen", cpuShare=0.5, **{"for": "10m"}))
    cluster.settle().patch("outages", "o", {"spec": {"cpuShare": None}})
    cluster.settle().create(make_node("late").cpu("4").memory("8Gi"))
    cluster.settle()
    assert "cpuShare: CpuStolen needs a share" in status(cluster)["message"]
    assert status(cluster)["affected"] == ["n0"]
    cluster.patch("outages", "o", {"spec": {"cpuShare": 0.25}})
    cluster.settle()
    assert status(cluster)["affected"] == ["late", "n0"]
    assert told_of(cluster, "late", "stolen.kubescene.dev/") == {"o": 0.25}


def test_a_reclaim_that_is_changed_gives_nodes_back_and_takes_others(cluster: ClusterWorld) -> None:
    for name, zone in (("a0", "a"), ("b0", "b"), ("c0", "c")):
        cluster.create(make_node(name).label(zone=zone))
    cluster.create(outage(what="SpotReclaim", nodes={"matchLabels": {"zone": "a"}}))
    cluster.advance("1m").patch("outages", "o", {"spec": {"nodes": {"matchLabels": {"zone": "b"}}}})
    cluster.advance("59s")
    assert not cluster.get("nodes", "a0")["spec"].get("taints")
    assert cluster.get("nodes", "b0")["spec"]["taints"]
    cluster.advance("1s")
    assert [node["metadata"]["name"] for node in cluster.list("nodes")] == ["a0", "c0"]


def test_an_outage_that_is_over_says_that_changes_come_too_late(cluster: ClusterWorld) -> None:
    nodes(cluster, 2)
    cluster.create(outage(what="NodesGone", count=1))
    cluster.settle().patch("outages", "o", {"spec": {"count": 2}})
    cluster.settle()
    assert status(cluster)["message"] == "it has ended: changes have no effect, create another one"
    assert len(cluster.list("nodes")) == 1


def test_selectors_that_choose_nobody_or_everybody_say_so() -> None:
    cluster = ClusterWorld(ClusterOptions(events=True))
    nodes(cluster, 3)
    cluster.create(outage("none", nodes={"matchLabels": {"a": "b"}}))
    cluster.create(outage("all", count=5))
    cluster.create(outage("some", count=2))
    cluster.create(outage("wrong", share=3))
    cluster.advance("1s")
    assert "chooses none of 3" in status(cluster, "none")["message"]
    assert status(cluster, "none")["affected"] == []
    assert status(cluster, "all")["message"] == "nodes: all 3 are affected"
    assert "message" not in status(cluster, "some")
    said = {
        event["involvedObject"]["name"]: (event["type"], event["reason"], event["message"])
        for event in cluster.list("events", "default")
        if event["involvedObject"]["kind"] == "Outage"
    }
    assert said["none"][:2] == ("Warning", "NobodyAffected")
    assert said["all"][:2] == ("Warning", "AllAffected")
    assert said["some"] == ("Normal", "OutageRuns", "2 of 3 nodes are affected")
    assert said["wrong"][:2] == ("Warning", "OutageRefused")


@pytest.mark.parametrize("what", ["NodesGone", "SpotReclaim"])
def test_a_machine_goes_with_its_node(cluster: ClusterWorld, what: str) -> None:
    group = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": "g"},
        "spec": {"size": 2, "template": {"status": {"capacity": {"cpu": "4", "pods": "10"}}}},
    }
    cluster.create(group)
    cluster.advance("1m").create(outage(what=what, count=1))
    cluster.advance("5m")
    assert len(cluster.list("nodes")) == 1
    assert len(cluster.list("instances")) == 1


def told_of(cluster: ClusterWorld, node: str, prefix: str) -> JsonObject:
    """What annotations of a node with a prefix say, by the rest of their names."""
    annotations = cluster.get("nodes", node)["metadata"].get("annotations") or {}
    return {
        name.removeprefix(prefix): json.loads(value)
        for name, value in annotations.items()
        if name.startswith(prefix)
    }


def test_trouble_with_pulls_is_told_to_the_nodes_and_taken_back(cluster: ClusterWorld) -> None:
    nodes(cluster, 2)
    web = {"matchLabels": {"app": "web"}}
    cluster.create(outage("slow", "ImagePull", pullTime="2m", **{"for": "10m"}))
    cluster.create(
        outage(
            "refused",
            "ImagePull",
            count=1,
            pullError="429 Too Many Requests",
            pods=web,
            namespace="shop",
        )
    )
    cluster.settle()
    [one] = status(cluster, "refused")["affected"]
    refused = {"error": "429 Too Many Requests", "pods": web, "namespace": "shop"}
    prefix = "pulls.kubescene.dev/"
    assert told_of(cluster, one, prefix) == {"slow": {"time": "2m"}, "refused": refused}
    other = "n1" if one == "n0" else "n0"
    assert told_of(cluster, other, prefix) == {"slow": {"time": "2m"}}
    cluster.advance("10m")
    assert told_of(cluster, one, prefix) == {"refused": refused}
    assert told_of(cluster, other, prefix) == {}
    cluster.delete("outages", "refused")
    cluster.settle()
    assert told_of(cluster, one, prefix) == {}


def container(cluster: ClusterWorld, name: str) -> JsonObject:
    found = cluster.get("pods", name)["status"].get("containerStatuses") or [{"state": {}}]
    state: JsonObject = found[0]["state"]
    return state


def test_pods_start_so_much_later_where_pulls_are_slow(cluster: ClusterWorld) -> None:
    nodes(cluster)
    cluster.create(outage("a", "ImagePull", pullTime="2m"))
    cluster.create(outage("b", "ImagePull", pullTime="30s", pods={"matchLabels": {"app": "x"}}))
    cluster.settle()
    cluster.create(make_pod("slow").cpu("1").label(app="x"))
    other = make_pod("other").cpu("1").build()
    other["spec"]["containers"][0]["image"] = "another"
    cluster.create(other)
    cluster.advance("119s")
    assert not pod_is_ready(cluster, "other")
    cluster.advance("1s")
    assert pod_is_ready(cluster, "other")
    assert not pod_is_ready(cluster, "slow")
    cluster.advance("30s")
    assert pod_is_ready(cluster, "slow")


def test_pulls_fail_while_it_lasts_and_are_tried_again_after_it(cluster: ClusterWorld) -> None:
    nodes(cluster)
    cluster.create(outage(what="ImagePull", pullError="429 Too Many Requests", **{"for": "10m"}))
    cluster.settle().create(make_pod("a").cpu("1"))
    cluster.advance("9m")
    waiting = container(cluster, "a")["waiting"]
    assert waiting["reason"] in ("ErrImagePull", "ImagePullBackOff")
    assert "429 Too Many Requests" in waiting["message"]
    # Back-off is at most five minutes: the next try after the end brings it.
    cluster.advance("6m")
    assert pod_is_ready(cluster, "a")


def test_what_is_said_of_pulls_can_be_changed_while_it_lasts(cluster: ClusterWorld) -> None:
    nodes(cluster)
    cluster.create(outage(what="ImagePull", pullTime="2m"))
    cluster.settle().patch("outages", "o", {"spec": {"pullTime": None, "pullError": "gone"}})
    cluster.settle()
    assert told_of(cluster, "n0", "pulls.kubescene.dev/") == {"o": {"error": "gone"}}


def test_several_outages_steal_cpu_of_a_node_and_each_gives_its_own_back(
    cluster: ClusterWorld,
) -> None:
    nodes(cluster)
    before = cluster.get("nodes", "n0")["status"]["allocatable"]
    cluster.create(outage("a", "CpuStolen", cpuShare=0.3, **{"for": "1m"}))
    cluster.create(outage("b", "CpuStolen", cpuShare=0.25))
    cluster.settle()
    assert told_of(cluster, "n0", "stolen.kubescene.dev/") == {"a": 0.3, "b": 0.25}
    assert cluster.get("nodes", "n0")["status"]["allocatable"] == before
    cluster.advance("1m")
    assert told_of(cluster, "n0", "stolen.kubescene.dev/") == {"b": 0.25}


def test_a_long_name_of_an_outage_still_makes_an_annotation(cluster: ClusterWorld) -> None:
    nodes(cluster)
    names = [f"{'very-' * 20}{each}" for each in ("a", "b")]
    for name in names:
        cluster.create(outage(name, "ImagePull", pullTime="1s"))
    cluster.settle()
    found = told_of(cluster, "n0", "pulls.kubescene.dev/")
    assert sorted(map(len, found)) == [63, 63]
    for name in names:
        cluster.delete("outages", name)
    cluster.settle()
    assert told_of(cluster, "n0", "pulls.kubescene.dev/") == {}


def test_the_reference_page_has_every_field() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/outage.md").read_text()
    version = DEFINITION["spec"]["versions"][0]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    for part in ("spec", "status"):
        for field in properties[part]["properties"]:
            assert f"`{field}`" in page, field
    for what in ALL:
        assert f"`{what}`" in page, what


def test_nodes_that_come_while_it_lasts_are_affected_too(cluster: ClusterWorld) -> None:
    nodes(cluster, 2)
    cluster.create(outage(**{"for": "10m"}))
    cluster.create(outage("pulls", what="ImagePull", pullTime="1m", **{"for": "2m"}))
    cluster.advance("1m").create(make_node("late").cpu("4").memory("8Gi"))
    cluster.settle()
    assert silent(cluster) == {"n0", "n1", "late"}
    assert status(cluster)["affected"] == ["late", "n0", "n1"]
    assert status(cluster)["message"] == "nodes: all 3 are affected"
    assert told_of(cluster, "late", "pulls.kubescene.dev/") == {"pulls": {"time": "1m"}}
    cluster.advance("1m").create(make_node("later").cpu("4").memory("8Gi"))
    cluster.settle()
    assert told_of(cluster, "later", "pulls.kubescene.dev/") == {}, "that one is over"
    cluster.advance("8m")
    assert status(cluster)["phase"] == "Ended"
    assert not silent(cluster)
    cluster.advance("1s")
    assert {ready(cluster, name) for name in ("n0", "n1", "late", "later")} == {"True"}
    cluster.create(make_node("last").cpu("4").memory("8Gi"))
    assert ready(cluster.settle(), "last") == "True"


def test_nodes_that_come_are_drawn_like_others(cluster: ClusterWorld) -> None:
    """As many as there would be had all been there; but nobody is let off for them."""
    nodes(cluster, 4)
    cluster.create(outage(share=0.5))
    cluster.create(outage("two", what="CpuStolen", count=2, cpuShare=0.5))
    before = set(status(cluster.settle())["affected"])
    robbed = status(cluster, "two")["affected"]
    for number in range(4, 12):
        cluster.create(make_node(f"n{number}").cpu("4").memory("8Gi"))
        cluster.settle()
        now = set(status(cluster)["affected"])
        assert now >= before
        assert len(now) <= -(-(number + 1) // 2)
        before = now
    assert len(before) >= 4
    assert silent(cluster) == before
    assert status(cluster, "two")["affected"] == robbed, "its two are there"


def test_what_takes_machines_takes_those_that_are_there(cluster: ClusterWorld) -> None:
    nodes(cluster)
    cluster.create(outage(what="SpotReclaim"))
    cluster.create(outage("gone", what="NodesGone", nodes={"matchLabels": {"a": "b"}}))
    cluster.advance("1m").create(make_node("late").cpu("4").labels({"a": "b"}))
    cluster.advance("5m")
    assert [node["metadata"]["name"] for node in cluster.list("nodes")] == ["late"]


def test_groups_choose_the_nodes_of_node_groups(cluster: ClusterWorld) -> None:
    for name, tier in (("g", "cheap"), ("h", "dear")):
        cluster.create(
            {
                "apiVersion": "kubescene.dev/v1alpha1",
                "kind": "NodeGroup",
                "metadata": {"name": name, "labels": {"tier": tier}},
                "spec": {
                    "size": 2,
                    "template": {"status": {"capacity": {"cpu": "4", "pods": "10"}}},
                },
            }
        )
    nodes(cluster)
    cluster.advance("1m")
    wanted = outage(groups={"matchLabels": {"tier": "cheap"}})
    del wanted["spec"]["nodes"]
    cluster.create(wanted)
    found = silent(cluster.settle())
    assert len(found) == 2
    of = {
        cluster.get("nodes", name)["metadata"]["labels"]["kubescene.dev/node-group"]
        for name in found
    }
    assert of == {"g"}
    cluster.patch("nodegroups", "g", {"spec": {"size": 3}}, patch_type="merge")
    cluster.advance("5m")
    assert len(silent(cluster)) == 3
    cluster.create(outage("both", nodes={"matchLabels": {"a": "b"}}, groups={}))
    assert "chooses none" in status(cluster.settle(), "both")["message"]


# -- orders of node groups -----------------------------------------------------------------------


def of_groups(what: str, name: str = "o", **spec: object) -> JsonObject:
    made = outage(name, what, groups={"matchLabels": {"tier": "spot"}}, **spec)
    del made["spec"]["nodes"]
    return made


def node_group(name: str, tier: str = "spot", **spec: object) -> JsonObject:
    template = {"status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": name, "labels": {"tier": tier}},
        "spec": {"size": 0, "template": template, **spec},
    }


def instances(cluster: ClusterWorld) -> dict[str, JsonObject]:
    return {each["metadata"]["name"]: each for each in cluster.list("instances")}


def grow(cluster: ClusterWorld, size: int, *names: str) -> None:
    for name in names:
        cluster.patch("nodegroups", name, {"spec": {"size": size}})
    cluster.settle()


def test_without_capacity_orders_fail_and_come_again_after_it(cluster: ClusterWorld) -> None:
    cluster.create(node_group("spot"))
    cluster.create(node_group("std", "std"))
    cluster.create(of_groups("NoCapacity", **{"for": "10m"}, code="Stockout"))
    cluster.settle()
    assert status(cluster)["affected"] == ["spot"]
    grow(cluster, 1, "spot", "std")
    found = instances(cluster)
    assert found["std-0"]["status"]["phase"] == "Registered"
    assert found["spot-0"]["status"]["error"] == {
        "class": "OutOfResource",
        "code": "Stockout",
        "message": "there are no more machines",
    }
    cluster.advance("10m")
    grow(cluster, 2, "spot")
    assert instances(cluster)["spot-1"]["status"]["phase"] == "Registered"
    assert not cluster.get("nodegroups", "spot")["metadata"].get("annotations")


def test_slow_boots_take_so_many_times_as_long(cluster: ClusterWorld) -> None:
    boot = {"time": "60s", "registration": "10s", "ready": "4s"}
    cluster.create(node_group("spot", boot=boot, shutdown={"time": "8s"}))
    cluster.create(of_groups("BootsSlow", "a", bootFactor=1.5))
    cluster.create(of_groups("BootsSlow", "b", bootFactor=2))
    cluster.settle()
    grow(cluster, 1, "spot")
    spec = instances(cluster)["spot-0"]["spec"]
    assert spec["boot"] == {"time": "3m", "registration": "30s", "ready": "12s"}
    assert spec["shutdown"] == {"time": "8s"}
    cluster.delete("outages", "a")
    cluster.settle()
    grow(cluster, 2, "spot")
    assert instances(cluster)["spot-1"]["spec"]["boot"]["time"] == "2m"


def test_a_share_of_boots_fails_when_they_should_have_ended(cluster: ClusterWorld) -> None:
    cluster.create(node_group("spot", boot={"time": "60s"}))
    cluster.create(of_groups("BootsFail", failShare=0.5, message="no disk"))
    cluster.settle()
    grow(cluster, 40, "spot")
    assert {each["status"].get("phase") for each in instances(cluster).values() if "status" in each}
    cluster.advance("1m")
    phases = [each["status"]["phase"] for each in instances(cluster).values()]
    assert 10 <= phases.count("Failed") <= 30
    assert phases.count("Failed") + phases.count("Registered") == 40
    errors = {
        e["status"]["error"]["message"]
        for e in instances(cluster).values()
        if e["status"]["phase"] == "Failed"
    }
    assert errors == {"no disk"}


@pytest.mark.parametrize(
    "annotation",
    [
        {"no-capacity.kubescene.dev/x": "no JSON"},
        {"boots-slow.kubescene.dev/x": "slowly"},
        {"boots-slow.kubescene.dev/x": "-1"},
        {"boots-fail.kubescene.dev/x": '{"share": 0}'},
    ],
)
def test_an_annotation_that_makes_no_sense_is_told_by_its_group(
    cluster: ClusterWorld, annotation: dict[str, str]
) -> None:
    group = node_group("spot", size=1)
    group["metadata"]["annotations"] = annotation
    cluster.create(group)
    cluster.advance("1m")
    (name,) = annotation
    assert f"annotation {name}: " in cluster.get("nodegroups", "spot")["status"]["message"]
    assert instances(cluster) == {}
