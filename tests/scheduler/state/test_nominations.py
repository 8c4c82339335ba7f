"""Who holds which node while others leave it."""

from kubescene.scheduler.state.nominations import Nominations
from kubescene.testing.builders import make_node, make_pod
from scheduler.tables import Table


def test_whoever_gives_up_a_node_leaves_it_to_the_others_there() -> None:
    table = Table(make_node("n").build())
    first, second = (table.pod(make_pod(name).build()) for name in ("p", "q"))
    nominations = Nominations()
    nominations.add(first, "n")
    nominations.add(second, "n")
    nominations.remove(first)
    assert nominations.on("n") == [second]
    assert (nominations.node_of(first), nominations.node_of(second)) == ("", "n")
    nominations.remove(first)
    nominations.remove(second)
    assert nominations.on("n") == []
    assert not nominations
