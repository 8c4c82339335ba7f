"""Reader, Writer and Watcher of one actor over HTTP.

Reads ask the server. Watches are read, and their handlers called, only inside `pump` and
`wait_seen`, on the thread that calls them: a client has no thread of its own. What a handler may do
is what it may do everywhere: enqueue, never write.

Differences from the embedded client, which nobody can hide: a write is not yet seen when it
returns; changes of different kinds come in no common order; what exists already is told in the
order of the second of its creation; and where an answer carries no object (to a delete or an
eviction that left none), the record is the last state that the client has seen.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from kubescene.actors import Actor
from kubescene.api.options import (
    NO_OPTIONS,
    PLAIN_DELETE,
    DeleteOptions,
    OperationOrigin,
    WriteOptions,
)
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.api.selectors import LabelSelector
from kubescene.client.http import bodies
from kubescene.client.http.discovery import ApiResource, Discovery
from kubescene.client.http.endpoints import Endpoint
from kubescene.client.http.kubeconfigs import endpoint_at
from kubescene.client.http.listing import list_all
from kubescene.client.http.requests import JSON, Reply, Requests, target
from kubescene.client.http.rows import RowWatch, TableRow
from kubescene.client.http.watches import Following, HttpSubscription, OwnWrites
from kubescene.client.http.wire import WireRequest
from kubescene.client.interfaces import EventHandler, ObjectRef, Objects
from kubescene.client.waking import waking, waking_for_all
from kubescene.clock import SECOND, Clock, Deadline, ScaledClock
from kubescene.errors import NotFoundError, UnseenWriteError
from kubescene.types import JsonObject

POD = GroupVersionKind("", "v1", "Pod")
PAGE_SIZE = 500
TIMEOUT_S = 30.0
PATIENCE_S = 30.0

T = TypeVar("T")


class HttpClient:
    """A client of the API server at ``endpoint``, for one owner on one thread.

    ``timeout_s`` bounds one request; ``patience_s`` how long a watch may be broken, or a write may
    stay unseen, before that is an error. ``requests`` are those that it makes, if not all may be
    made.
    """

    def __init__(
        self,
        endpoint: Endpoint | str,
        actor: Actor,
        wake: Callable[[], None] | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = PATIENCE_S,
        page_size: int = PAGE_SIZE,
        clock: Clock | None = None,
        requests: Requests | None = None,
    ) -> None:
        endpoint = endpoint_at(endpoint) if isinstance(endpoint, str) else endpoint
        # At rate 1, a scaled clock is one that nobody can set: just right for time limits.
        self._clock = clock or ScaledClock(1)
        self._actor = actor
        self._wake = wake
        self._patience_s = patience_s
        self._page_size = page_size
        self._requests = requests or Requests(endpoint, self._clock, timeout_s=timeout_s)
        self._discovery = Discovery(self._requests)
        self._following = Following(
            self._requests, self._discovery, page_size=page_size, patience_s=patience_s
        )
        self._own = OwnWrites()
        self._newest = 0

    @property
    def actor(self) -> Actor:
        return self._actor

    # -- Reader ----------------------------------------------------------------------------

    def get(self, ref: ObjectRef) -> JsonObject:
        api = self._discovery.find(ref.gvk)
        return self._requests.read(api.path(ref.namespace, ref.name), Reply.object)

    def find(self, ref: ObjectRef) -> JsonObject | None:
        try:
            return self.get(ref)
        except NotFoundError:
            return None

    def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: LabelSelector | None = None
    ) -> Objects:
        api = self._discovery.find(gvk)
        if labels is not None and labels.is_nothing:
            return []
        page = list_all(
            self._requests,
            api,
            namespace=namespace,
            labels="" if labels is None else str(labels),
            page_size=self._page_size,
        )
        return [listed.record.decode() for listed in page.items]

    def owned(self, gvk: GroupVersionKind, owner_uid: str) -> Objects:
        """From the watch, if the kind is watched: as of what was delivered last."""
        api = self._discovery.find(gvk)
        if stream := self._following.known(api):
            return stream.cache.owned(owner_uid)
        page = list_all(self._requests, api, page_size=self._page_size)
        items = [it for it in page.items if it.record.owner == owner_uid]
        return [it.record.decode() for it in sorted(items, key=lambda it: it.order)]

    def on_node(self, node: str, *, labels: LabelSelector | None = None) -> Objects:
        api = self._discovery.find(POD)
        page = list_all(
            self._requests,
            api,
            labels="" if labels is None else str(labels),
            fields=f"spec.nodeName={node}",
            page_size=self._page_size,
        )
        return [listed.record.decode() for listed in page.items]

    def follow_row(self, ref: ObjectRef) -> Generator[TableRow | None, None, None]:
        """What ``kubectl get -w`` shows of one object, without end.

        None comes first, once the watch is open, and when nothing did for a while.
        """
        api = self._discovery.find(ref.gvk)
        return RowWatch(self._requests, api, ref.name, self._patience_s).follow()

    def resources(self) -> Sequence[ApiResource]:
        """Everything that the server has and lets people watch, in the preferred version."""
        return self._discovery.all_watched()

    def read_page(self, path: str, **query: str) -> bytes:
        """What a path that is no resource answers."""
        return self._requests.read(path, _body, **query)

    def delete_page(self, path: str) -> bytes:
        """Take away what is at a path that is no resource."""
        return self._ask(WireRequest("DELETE", path), _body)

    def review(self, obj: JsonObject) -> JsonObject:
        """The answer to an object that nobody stores, such as a SelfSubjectReview."""
        api = self._api_of(obj)
        request = WireRequest("POST", api.collection(), bodies.encode(obj), JSON)
        return self._ask(request, Reply.object)

    def get_scale(self, ref: ObjectRef) -> JsonObject:
        api = self._discovery.find(ref.gvk)
        return self._requests.read(api.path(ref.namespace, ref.name, "scale"), Reply.object)

    # -- Writer ----------------------------------------------------------------------------

    def create(self, obj: JsonObject, *, options: WriteOptions = NO_OPTIONS) -> Record:
        api = self._api_of(obj)
        path = api.collection(api.place(_namespace(obj)))
        return self._write("POST", api, path, obj, options)

    def update(
        self, obj: JsonObject, *, subresource: str = "", options: WriteOptions = NO_OPTIONS
    ) -> Record:
        api = self._api_of(obj)
        path = api.path(_namespace(obj), _name(obj), subresource)
        return self._write("PUT", api, path, obj, options)

    def patch(
        self,
        ref: ObjectRef,
        patch: Any,
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        api = self._discovery.find(ref.gvk)
        path = api.path(ref.namespace, ref.name, subresource)
        return self._write("PATCH", api, path, patch, options, patch_type)

    def delete(
        self,
        ref: ObjectRef,
        *,
        options: DeleteOptions = PLAIN_DELETE,
        origin: OperationOrigin | None = None,
    ) -> Record:
        bodies.refuse_origin(origin)
        api = self._discovery.find(ref.gvk)
        request = WireRequest(
            "DELETE",
            api.path(ref.namespace, ref.name),
            bodies.encode(bodies.delete_body(options)),
            JSON,
        )
        read = partial(bodies.read_deleted, api, ref.name, api.place(ref.namespace))
        record, is_gone = self._ask(request, read)
        return self._noted(record, is_gone=is_gone, is_dry=options.dry_run)

    def bind(
        self,
        pod: ObjectRef,
        node: str,
        *,
        uid: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> Record:
        """The record is the pod as it is after the binding: the answer itself holds none."""
        metadata: JsonObject = {"name": pod.name, "namespace": pod.namespace}
        if uid:
            metadata["uid"] = uid
        if annotations:
            metadata["annotations"] = dict(annotations)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        api = self._discovery.find(POD)
        self._send("POST", api.path(pod.namespace, pod.name, "binding"), body)
        return self._after(api, pod)

    def scale(self, ref: ObjectRef, replicas: int, *, options: WriteOptions = NO_OPTIONS) -> Record:
        """The record is the object as it is afterwards: the answer is a Scale."""
        api = self._discovery.find(ref.gvk)
        patch = {"spec": {"replicas": replicas}}
        path = api.path(ref.namespace, ref.name, "scale")
        self._send("PATCH", path, patch, options, PatchType.MERGE)
        return self._after(api, ref, is_dry=options.dry_run)

    def evict(
        self,
        pod: ObjectRef,
        *,
        options: DeleteOptions = PLAIN_DELETE,
        origin: OperationOrigin | None = None,
    ) -> Record:
        """The record is the pod as it is afterwards, or its last state if it is gone."""
        bodies.refuse_origin(origin)
        api = self._discovery.find(POD)
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": api.place(pod.namespace)},
            "deleteOptions": bodies.delete_body(options),
        }
        self._send("POST", api.path(pod.namespace, pod.name, "eviction"), body)
        return self._after(api, pod, is_dry=options.dry_run)

    def wait_seen(self, revision: int) -> None:
        self._following.refuse_writes()
        if revision > max(self._newest, self._following.newest):
            raise ValueError(f"revision {revision} does not exist yet, as far as this client knows")
        deadline = Deadline(self._clock, int(self._patience_s * SECOND))
        while unseen := self._own.first_unseen(revision):
            if not self.pump(deadline.left_s) and deadline.is_over:
                raise UnseenWriteError(
                    f"{unseen.record.resource} {unseen.record.namespace}/{unseen.record.name}: "
                    f"revision {unseen.record.revision} was written, but not delivered by the "
                    f"watch of {self._requests.endpoint.url} within {self._patience_s:g} s; "
                    "the server is too slow, or does not serve what it has stored"
                )

    # -- Watcher ---------------------------------------------------------------------------

    def watch(
        self,
        gvk: GroupVersionKind,
        handler: EventHandler,
        *,
        quiet: bool = False,
        traits: int = EVERYTHING,
    ) -> HttpSubscription:
        del traits  # a server tells everybody everything
        api = self._discovery.find(gvk)
        return self._following.watch(api, waking(handler, None if quiet else self._wake))

    def watch_all(
        self,
        handler: EventHandler,
        *,
        quiet: bool = False,
        patient: bool = False,
        traits: int = EVERYTHING,
    ) -> HttpSubscription:
        del patient, traits  # a server tells everybody everything
        return self._following.watch_all(waking_for_all(handler, None if quiet else self._wake))

    def changed_since(self, revision: int) -> bool:
        """As far as it was delivered; a client that watches nothing cannot tell, and says yes."""
        return self._following.changed_since(revision)

    def is_following(self, resource: GroupResource) -> bool:
        """Whether a resource is watched, be it as one of all."""
        return bool(self._following.streams_of(resource))

    def pump(self, timeout_s: float = 0.0) -> int:
        """Call the handlers for what has arrived, waiting up to ``timeout_s`` for something.

        Returns the number of changes. Raises `ApiError` when a watch has been broken for too long
        or was refused; what a handler raises comes out of here as well.
        """
        deadline = Deadline(self._clock, int(timeout_s * SECOND))
        while True:
            told = self._following.turn(deadline.left_s)
            if told or deadline.is_over:
                return told

    def close(self) -> None:
        """End all watches and the connection of this client."""
        self._following.close()
        self._own.clear()
        self._requests.close()

    # -- inside ----------------------------------------------------------------------------

    def _write(
        self,
        method: str,
        api: ApiResource,
        path: str,
        body: Any,
        options: WriteOptions,
        patch_type: PatchType | None = None,
    ) -> Record:
        request = self._request(method, path, body, options, patch_type)
        record = self._ask(request, partial(bodies.read_record, api.form))
        return self._noted(record, is_gone=bodies.is_ended(record), is_dry=options.dry_run)

    def _send(
        self,
        method: str,
        path: str,
        body: JsonObject,
        options: WriteOptions = NO_OPTIONS,
        patch_type: PatchType | None = None,
    ) -> None:
        """A write to a subresource whose answer is not the object."""
        self._ask(self._request(method, path, body, options, patch_type), bodies.check_success)

    def _request(
        self,
        method: str,
        path: str,
        body: Any,
        options: WriteOptions,
        patch_type: PatchType | None,
    ) -> WireRequest:
        query = bodies.write_query(options, self._actor.manager, patch_type)
        content_type = JSON if patch_type is None else patch_type.value
        return WireRequest(method, target(path, **query), bodies.encode(body), content_type)

    def _ask(self, request: WireRequest, read: Callable[[Reply], T]) -> T:
        self._following.refuse_writes()
        return self._requests.ask(request, read)

    def _after(self, api: ApiResource, ref: ObjectRef, *, is_dry: bool = False) -> Record:
        """The object after a write whose answer did not hold it."""
        read = partial(bodies.read_record, api.form)
        try:
            record = self._requests.read(api.path(ref.namespace, ref.name), read)
        except NotFoundError:
            bare = bodies.bare_record(api, ref.name, api.place(ref.namespace))
            return self._noted(bare, is_gone=True, is_dry=is_dry)
        return self._noted(record, is_dry=is_dry)

    def _noted(self, record: Record, *, is_gone: bool = False, is_dry: bool = False) -> Record:
        """A record to hand out, noted as a write that the watches have yet to deliver."""
        streams = self._following.streams_of(record.resource)
        if is_gone and not record.revision:
            record = next((known for it in streams if (known := it.last(record))), record)
        if not is_dry:
            self._newest = max(self._newest, record.revision)
            self._own.note(record, streams, is_gone=is_gone)
        return record

    def _api_of(self, obj: JsonObject) -> ApiResource:
        gvk = GroupVersionKind.of(obj.get("apiVersion", ""), obj.get("kind", ""))
        return self._discovery.find(gvk)


def _body(reply: Reply) -> bytes:
    return reply.body


def _namespace(obj: JsonObject) -> str:
    return (obj.get("metadata") or {}).get("namespace") or ""


def _name(obj: JsonObject) -> str:
    return (obj.get("metadata") or {}).get("name") or ""
