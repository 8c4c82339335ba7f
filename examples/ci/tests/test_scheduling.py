"""What is easier said in Python than in a scenario."""

from kubescene.testing import make_node, make_pod


def test_a_late_pod_waits_for_a_node(kubescene_cluster):
    cluster = kubescene_cluster(seed=1)
    cluster.create(make_pod("a").cpu("2"))
    assert cluster.settle().pod("a").is_pending
    cluster.create(make_node("n1").cpu("4"))
    assert cluster.settle().pod("a").node == "n1"
