"""What is sent beside the object: options as query parameters and bodies, and what comes back."""

import orjson

from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record, make_record
from kubescene.client.http.discovery import ApiResource
from kubescene.client.http.records import ReplyForm, parse_object
from kubescene.client.http.requests import Reply
from kubescene.client.http.statuses import error_of
from kubescene.types import JsonObject

NO_ORIGIN = (
    "the origin of an operation and the subresource that a write came through cannot be told over "
    "HTTP: they belong to the embedded world"
)


def refuse_origin(origin: object) -> None:
    """Nothing may be lost silently on the way."""
    if origin is not None:
        raise ValueError(NO_ORIGIN)


def write_query(
    options: WriteOptions, manager: str, patch_type: PatchType | None
) -> dict[str, str]:
    """The parameters of a write."""
    refuse_origin(options.origin or options.through or None)
    is_forced = options.force and patch_type is PatchType.APPLY
    return {
        "fieldManager": options.field_manager or manager,
        "fieldValidation": "Strict" if options.strict else "Ignore",
        "dryRun": "All" if options.dry_run else "",
        "force": "true" if is_forced else "",
    }


def delete_body(options: DeleteOptions) -> JsonObject:
    """``DeleteOptions`` as they are sent."""
    body: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if options.grace_period_s is not None:
        body["gracePeriodSeconds"] = options.grace_period_s
    preconditions = {"uid": options.uid, "resourceVersion": options.resource_version}
    if given := {name: value for name, value in preconditions.items() if value}:
        body["preconditions"] = given
    if options.propagation_policy:
        body["propagationPolicy"] = options.propagation_policy
    if options.dry_run:
        body["dryRun"] = ["All"]
    return body


def read_record(form: ReplyForm, reply: Reply) -> Record:
    return parse_object(form, reply.body).record


def check_success(reply: Reply) -> None:
    """Raises the failure that an answer may hold although its status line speaks of success.

    An eviction of a pod with several budgets is answered so.
    """
    obj = reply.object()
    if obj.get("kind") == "Status" and obj.get("status") == "Failure":
        raise error_of(obj)


def read_deleted(api: ApiResource, name: str, namespace: str, reply: Reply) -> tuple[Record, bool]:
    """The record in the answer to a delete, and whether the object is gone for good.

    A ``Status`` says only that it is, and which it was.
    """
    obj = reply.object()
    if obj.get("kind") != "Status" or api.gvk.kind == "Status":
        return read_record(api.form, reply), is_gone(obj)
    details = obj.get("details")
    uid = details.get("uid") if isinstance(details, dict) else ""
    return bare_record(api, name, namespace, uid=str(uid or "")), True


def is_gone(obj: JsonObject) -> bool:
    """Whether the object in the answer to a delete was removed rather than marked."""
    return not (obj.get("metadata") or {}).get("deletionTimestamp") or not is_held(obj)


def is_ended(record: Record) -> bool:
    """Whether a change, as it was answered, took the last thing that held a marked object.

    A server takes the object away then, whatever revision its answer names.
    """
    return record.deleting and not is_held(record.decode())


def is_held(obj: JsonObject) -> bool:
    """Whether grace or a finalizer keeps a marked object; a namespace has its own in its spec."""
    metadata, spec = obj.get("metadata") or {}, obj.get("spec")
    if metadata.get("deletionGracePeriodSeconds") or metadata.get("finalizers"):
        return True
    is_namespace = obj.get("kind") == "Namespace" and isinstance(spec, dict)
    return bool(is_namespace and spec and spec.get("finalizers"))


def bare_record(api: ApiResource, name: str, namespace: str, *, uid: str = "") -> Record:
    """All that is known of an object that nobody has seen: how it is called."""
    metadata: JsonObject = {"name": name}
    if api.namespaced:
        metadata["namespace"] = namespace
    if uid:
        metadata["uid"] = uid
    obj = {"apiVersion": api.gvk.api_version, "kind": api.gvk.kind, "metadata": metadata}
    return make_record(api.resource, obj, 0)


def encode(value: object) -> bytes:
    return orjson.dumps(value)
