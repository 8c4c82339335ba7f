from kubescene.scheduler.state.node_tree import NodeTree, zone_key

ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


def tree(**zones: list[str]) -> NodeTree:
    made = NodeTree()
    for zone, names in zones.items():
        for name in names:
            made.add(name, {ZONE: zone})
    return made


def test_n_3_zones_take_turns() -> None:
    made = tree(A=["a1", "a2", "a3"], B=["b1"], C=["c1", "c2"])
    assert made.order() == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_n_2_a_zone_that_comes_back_stands_last() -> None:
    made = tree(A=["a1"], B=["b1"])
    made.remove("a1")
    made.add("a2", {ZONE: "A"})
    assert made.order() == ["b1", "a2"]


def test_a_node_that_moves_to_another_zone_is_appended_there() -> None:
    made = tree(A=["a1", "a2"], B=["b1"])
    made.add("a1", {ZONE: "B"})
    assert made.order() == ["a2", "b1", "a1"]


def test_n_1_a_beta_label_wins_even_if_empty() -> None:
    assert zone_key({BETA_ZONE: "", ZONE: "z"}) == ""
    assert zone_key({BETA_ZONE: "b", ZONE: "z"}) == ":\0:b"
    assert zone_key({}) == ""
