"""Tokens of ServiceAccounts: issued for some time, signed, believed while their account is there.

They are JSON Web Tokens with the claims of kube-apiserver v1.36, signed with a key that only this
server has (HS256: there is nothing that others could verify them by). They are dated by the
server's clock, as Leases are, whatever time a scenario plays.
"""

import base64
import hmac
from hashlib import sha256
from typing import Any

import orjson
from msgspec import Struct

from kubescene.actors import Actor
from kubescene.api.scheme import GroupResource, GroupVersionKind, ResourceType
from kubescene.api.validation import raise_if_invalid
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC
from kubescene.apiserver.access.authorizing import AUTHENTICATED
from kubescene.apiserver.access.identity import SERVICE_ACCOUNT
from kubescene.clock import SECOND, format_time
from kubescene.clock.randomness import unguessable
from kubescene.errors import BadRequestError, ConflictError, NotFoundError
from kubescene.registry import Registry
from kubescene.types import JsonObject

ISSUER = "https://kubernetes.default.svc.cluster.local"
KEY_BYTES = 32
HOUR_S, SHORTEST_S, LONGEST_S = 3600, 600, 1 << 32
LONGEST_TOKEN = 16 * 1024
ACCOUNTS = GroupResource("", "serviceaccounts")
TOKEN_REQUEST = ResourceType(
    gvk=GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest"),
    plural="tokenrequests",
    namespaced=True,
)
_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_KUBERNETES = "kubernetes.io"


class TokenBearer(Struct, frozen=True):
    """Who shows a token, and for whom it is; or why it counts for nothing."""

    actor: Actor | None = None
    audiences: tuple[str, ...] = ()
    error: str = "invalid bearer token"


UNKNOWN = TokenBearer()


class ServiceAccountTokens:
    """Issues and recognises them. Any thread may ask."""

    def __init__(self, registry: Registry, key: bytes = b"") -> None:
        """Without a key they count until this server ends."""
        self._registry = registry
        self._key = key or unguessable(KEY_BYTES)

    def issue(self, namespace: str, name: str, request: JsonObject) -> JsonObject:
        """The TokenRequest with its answer."""
        account = self._found(ACCOUNTS, namespace, name)
        if account is None:
            raise _missing("serviceaccounts", name)
        spec: JsonObject = dict(request.get("spec") or {})
        seconds = spec.get("expirationSeconds")
        seconds = HOUR_S if seconds is None else seconds
        _check(seconds)
        audiences = spec.get("audiences") or [ISSUER]
        now = self._registry.clocks.server.now() // SECOND
        claims: JsonObject = {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "iss": ISSUER,
            "jti": _new_id(),
            _KUBERNETES: {
                "namespace": namespace,
                "serviceaccount": {"name": name, "uid": account["metadata"]["uid"]},
                **self._bound(spec.get("boundObjectRef"), namespace, name),
            },
            "nbf": now,
            "sub": f"{SERVICE_ACCOUNT}{namespace}:{name}",
        }
        expires = format_time((now + seconds) * SECOND)
        return {
            **request,
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": None},
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": {"token": self._signed(claims), "expirationTimestamp": expires},
        }

    def bearer(self, token: bytes, audiences: tuple[str, ...] = (ISSUER,)) -> TokenBearer:
        """Who shows this token to one of these."""
        claims = self._claims(token)
        if claims is None:
            return UNKNOWN
        now = self._registry.clocks.server.now() // SECOND
        if not claims["nbf"] <= now < claims["exp"]:
            return _refused("service account token has expired")
        meant = tuple(each for each in audiences if each in claims["aud"])
        if not meant:
            return _refused(
                f"token audiences {_listed(claims['aud'])} is invalid for the target audiences "
                f"{_listed(audiences)}"
            )
        about = claims[_KUBERNETES]
        namespace, account = about["namespace"], about["serviceaccount"]
        if not self._is_there(ACCOUNTS, namespace, account):
            return _refused("service account token has been invalidated")
        for kind, plural in _BOUND.items():
            place = "" if kind == "Node" else namespace
            bound = about.get(kind.lower())
            if bound and not self._is_there(GroupResource("", plural), place, bound):
                return _refused("service account token has been invalidated")
        return TokenBearer(_actor(claims, namespace, account), meant, "")

    # -- inside ----------------------------------------------------------------------------

    def _bound(self, reference: JsonObject | None, namespace: str, account: str) -> JsonObject:
        """The claim about the object with which a token ends."""
        if not reference:
            return {}
        kind, name = reference.get("kind") or "", reference.get("name") or ""
        if kind not in _BOUND or reference.get("apiVersion") not in ("v1", "", None):
            version = reference.get("apiVersion") or ""
            raise BadRequestError(f"cannot bind token to object of type {version}, Kind={kind}")
        place = "" if kind == "Node" else namespace
        found = self._found(GroupResource("", _BOUND[kind]), place, name)
        if found is None:
            raise _missing(_BOUND[kind], name)
        uid = found["metadata"]["uid"]
        if reference.get("uid") and reference["uid"] != uid:
            raise ConflictError(
                f'Operation cannot be fulfilled on {kind} "{name}": the UID in the bound object '
                f"reference ({reference['uid']}) does not match the UID in record. The object "
                "might have been deleted and then recreated",
                name=name,
                kind=kind,
            )
        if kind == "Pod" and found["spec"].get("serviceAccountName") != account:
            raise BadRequestError(
                f'cannot bind token for serviceaccount "{account}" to pod running with different '
                "serviceaccount name."
            )
        return {kind.lower(): {"name": name, "uid": uid}}

    def _found(self, resource: GroupResource, namespace: str, name: str) -> JsonObject | None:
        record = self._registry.store.get(resource, namespace, name)
        return None if record is None else record.decode()

    def _is_there(self, resource: GroupResource, namespace: str, named: JsonObject) -> bool:
        found = self._found(resource, namespace, named["name"])
        return found is not None and found["metadata"]["uid"] == named["uid"]

    def _signed(self, claims: JsonObject) -> str:
        header = {"alg": "HS256", "kid": sha256(self._key).hexdigest()[:16], "typ": "JWT"}
        body = b".".join(map(_encoded, (orjson.dumps(header), orjson.dumps(claims))))
        return b".".join((body, _encoded(self._mac(body)))).decode()

    def _claims(self, token: bytes) -> JsonObject | None:
        """What a token of ours says; None if it is none."""
        body, _, signature = token.rpartition(b".")
        if len(token) > LONGEST_TOKEN or body.count(b".") != 1:
            return None
        if not hmac.compare_digest(_encoded(self._mac(body)), signature):
            return None
        payload = body.partition(b".")[2]
        claims: JsonObject = orjson.loads(base64.urlsafe_b64decode(payload + b"=" * 3))
        return claims

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")


def _check(seconds: int) -> None:
    errors, path = ErrorList(), SPEC.child("expirationSeconds")
    if seconds < SHORTEST_S:
        errors.invalid(path, seconds, "may not specify a duration less than 10 minutes")
    if seconds > LONGEST_S:
        errors.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")
    raise_if_invalid(errors, TOKEN_REQUEST, "")


def _actor(claims: JsonObject, namespace: str, account: JsonObject) -> Actor:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    extra = [(_CREDENTIAL, (f"JTI={claims['jti']}",))]
    for kind in ("node", "pod"):
        if bound := claims[_KUBERNETES].get(kind):
            extra.append((f"authentication.kubernetes.io/{kind}-name", (bound["name"],)))
            extra.append((f"authentication.kubernetes.io/{kind}-uid", (bound["uid"],)))
    return Actor(claims["sub"], groups=groups, uid=account["uid"], extra=tuple(extra))


def _refused(why: str) -> TokenBearer:
    return TokenBearer(error=f"[invalid bearer token, {why}]")


def _missing(plural: str, name: str) -> NotFoundError:
    return NotFoundError(f'{plural} "{name}" not found', name=name, kind=plural)


def _listed(names: Any) -> str:
    return "[" + " ".join(f'"{each}"' for each in names) + "]"


def _new_id() -> str:
    text = unguessable(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:]}"


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
