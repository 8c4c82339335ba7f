"""Whatever is asked in whatever order: history is gapless and nobody's objects are changed."""

import hashlib
from typing import Any

import orjson
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubescene.actors import Actor
from kubescene.api.kinds import POD
from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.api.records.changes import ChangeType
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.client import DirectClient, ObjectRef
from kubescene.errors import ApiError, ConflictError
from registry.conftest import make_registry
from widgets import widget_definition

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SERVICE = GroupVersionKind("", "v1", "Service")
WIDGET = GroupVersionKind("example.com", "v1", "Widget")
KINDS = (CONFIG_MAP, SERVICE, POD, WIDGET)
NAMES = st.sampled_from(["a", "b"])
KIND = st.sampled_from(KINDS)
LABELS = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["1", "2"]), max_size=2)


def definition() -> dict[str, Any]:
    inner = {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}
    properties = {"spec": {"type": "object", "default": {}, "properties": {"in": inner}}}
    return widget_definition(schema={"type": "object", "properties": properties})


def body(kind: GroupVersionKind, name: str, labels: dict[str, str]) -> dict[str, Any]:
    obj: dict[str, Any] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "labels": labels, "unknown": 1},
    }
    if kind is SERVICE:
        obj["spec"] = {"ports": [{"port": 80}], "type": "NodePort"}
    elif kind is POD:
        affinity = {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["x"]}
                ]
            }
        }
        obj["spec"] = {"containers": [{"name": "c", "image": "i"}], "affinity": affinity}
    elif kind is WIDGET:
        obj["spec"] = {"in": {"unknown": None}, "other": [1]}
    else:
        obj["data"] = {"k": "v"}
    return obj


def digest(obj: Any) -> str:
    return hashlib.sha256(orjson.dumps(obj)).hexdigest()


class RegistryMachine(RuleBasedStateMachine):
    """Random writes by one user, checked against a replay of the history."""

    @initialize()
    def start(self) -> None:
        self.registry = make_registry()
        self.store = self.registry.store
        self.client = DirectClient(self.registry, Actor("user"))
        self.client.create(definition())
        self.begin = self.store.revision
        self.revisions: list[int] = []
        self.uids: dict[tuple[str, str], list[str]] = {}
        self.handed_out: list[tuple[Any, str]] = []
        self.store.subscribe(lambda change: self.revisions.append(change.revision))

    def keep(self, obj: Any) -> Any:
        """Remember what was given to or taken from the registry; it must stay as it is."""
        self.handed_out.append((obj, digest(obj)))
        return obj

    def attempt(self, write: Any) -> None:
        before = self.store.revision
        try:
            write()
        except ApiError:
            assert self.store.revision == before

    @rule(kind=KIND, name=NAMES, labels=LABELS, dry_run=st.booleans())
    def create(
        self, kind: GroupVersionKind, name: str, labels: dict[str, str], dry_run: bool
    ) -> None:
        obj = self.keep(body(kind, name, labels))
        options = WriteOptions(dry_run=dry_run)
        before = self.store.revision

        def write() -> None:
            record = self.registry.create(self.client.actor, obj, options=options)
            if dry_run:
                assert self.store.revision == before
                return
            self.keep(self.store.decoded(record))
            known = self.uids.setdefault((kind.kind, name), [])
            assert record.uid not in known
            known.append(record.uid)

        self.attempt(write)

    @rule(kind=KIND, name=NAMES, labels=LABELS)
    def patch(self, kind: GroupVersionKind, name: str, labels: dict[str, str]) -> None:
        patch = self.keep({"metadata": {"labels": labels or None, "bogus": 1}})
        ref = ObjectRef(kind, name, "default")
        self.attempt(lambda: self.keep(self.store.decoded(self.client.patch(ref, patch))))

    @rule(kind=KIND, name=NAMES, labels=LABELS)
    def update(self, kind: GroupVersionKind, name: str, labels: dict[str, str]) -> None:
        found = self.client.find(ObjectRef(kind, name, "default"))
        if found is None:
            return
        self.keep(found)
        metadata = {**found["metadata"], "labels": labels}
        new = self.keep({**found, "metadata": metadata})
        record = self.client.update(new)
        assert record.labels == labels
        stale = {**metadata, "resourceVersion": str(self.begin)}
        try:
            self.client.update({**new, "metadata": stale})
        except ConflictError:
            pass
        else:
            raise AssertionError("a stale update was accepted")

    @rule(kind=KIND, name=NAMES)
    def delete(self, kind: GroupVersionKind, name: str) -> None:
        ref = ObjectRef(kind, name, "default")
        self.attempt(lambda: self.client.delete(ref, options=DeleteOptions(grace_period_s=0)))

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def every_accepted_write_is_one_revision(self) -> None:
        assert self.revisions == list(range(self.begin + 1, self.store.revision + 1))

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def lists_are_the_replay_of_the_history(self) -> None:
        state: dict[tuple[GroupResource, str, str], bytes] = {}
        for change in self.store.history.since(0):
            record = change.record
            key = (record.resource, record.namespace, record.name)
            if change.type is ChangeType.DELETED:
                del state[key]
            else:
                state[key] = record.data
        listed = {
            (record.resource, record.namespace, record.name): record.data
            for resource in self.store.resources()
            for record in self.store.list(resource)
        }
        assert listed == state

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def nothing_handed_in_or_out_was_changed(self) -> None:
        for obj, before in self.handed_out:
            assert digest(obj) == before

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def decoded_objects_are_what_the_bytes_say(self) -> None:
        for resource in self.store.resources():
            for record in self.store.list(resource):
                assert self.store.decoded(record) == orjson.loads(record.data)


RegistryMachine.TestCase.settings = settings(deadline=None, max_examples=25, stateful_step_count=20)
TestRegistry = RegistryMachine.TestCase
