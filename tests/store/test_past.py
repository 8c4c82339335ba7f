"""A list of the past is what the list was then: random writes against remembered lists."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.store import Store
from kubescene.testing import make_pod

PODS = GroupResource("", "pods")
OTHERS = GroupResource("", "configmaps")

WRITES = st.lists(
    st.tuples(
        st.sampled_from([PODS, PODS, OTHERS]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["x", "y", "z"]),
        st.sampled_from(["put", "put", "remove"]),
    ),
    max_size=40,
)
Write = tuple[GroupResource, str, str, str]


def apply(store: Store, write: Write, serial: int) -> None:
    resource, namespace, name, verb = write
    obj = make_pod(name, namespace).label(serial=str(serial)).build()
    if verb == "put":
        store.put(resource, obj)
    elif store.get(resource, namespace, name) is not None:
        store.remove(resource, namespace, name)


@settings(deadline=None, max_examples=60)
@given(WRITES)
def test_list_at_equals_the_list_of_then(writes: list[Write]) -> None:
    store = Store()
    remembered: dict[int, list[Record]] = {0: []}
    for serial, write in enumerate(writes):
        apply(store, write, serial)
        remembered[store.revision] = store.list(PODS)
    for revision, records in remembered.items():
        assert store.list_at(PODS, revision) == records
        assert store.list_at(PODS, revision, "a") == [r for r in records if r.namespace == "a"]


@settings(deadline=None, max_examples=60)
@given(WRITES)
def test_replaying_the_changes_gives_the_list(writes: list[Write]) -> None:
    store = Store()
    heard: list[Change] = []
    store.subscribe(heard.append, [PODS])
    for serial, write in enumerate(writes):
        apply(store, write, serial)
    state: dict[tuple[str, str], Record] = {}
    for change in heard:
        if change.type is ChangeType.DELETED:
            assert state.pop(change.record.key) is change.previous
        else:
            assert state.get(change.record.key) is change.previous
            state[change.record.key] = change.record
    assert [state[key] for key in sorted(state)] == store.list(PODS)
