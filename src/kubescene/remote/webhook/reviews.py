"""Who may write to a real API server while a scenario has it to itself.

Everything that Kubescene writes comes with one identity, that of its kubeconfig, and the person who
started it may have the same. So a request in that name passes only if it is the very write that is
under way just now: the engine makes one at a time, and announces it (`link`). What the server does
for itself passes, and so does bookkeeping: Leases, Events, reviews, dry runs.

Asked on the threads of the webhook: what is read here of the engine is read at one go.
"""

from typing import Any, NamedTuple

from kubescene.actors import Actor
from kubescene.api.kinds import BOOKKEEPING, SCENARIO
from kubescene.api.options import WriteOptions
from kubescene.api.scheme import GroupResource, Scheme
from kubescene.clock import Clock
from kubescene.errors import ApiError, BadRequestError, ForbiddenError
from kubescene.live.edits import ScenarioEdits
from kubescene.live.scenarios import LiveScenarios
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.remote.link import Announcement, Link
from kubescene.scenario.edits import UNDER_WAY
from kubescene.scenario.fields.definition import SCENARIOS
from kubescene.scenario.outsiders import refuse_outsider
from kubescene.store import Store
from kubescene.types import JsonObject

SERVER_USERS = frozenset({"system:apiserver"})
REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
PROBE = "kubescene-webhook-probe"
"""The name of a ConfigMap that nobody may create: so the engine sees that the webhook is asked."""
PROBED = "the webhook is asked"

_OPERATIONS = {
    "create": ("CREATE", ""),
    "update": ("UPDATE", ""),
    "patch": ("UPDATE", ""),
    "delete": ("DELETE", ""),
    "bind": ("CREATE", "binding"),
    "evict": ("CREATE", "eviction"),
}
APPLY_CREATES = ("patch", "CREATE")


class ReviewedRequest(NamedTuple):
    """What the API server asks about."""

    operation: str
    resource: GroupResource
    subresource: str
    namespace: str
    name: str
    user: str
    dry_run: bool
    kind: tuple[str, str]
    object: JsonObject | None
    old: JsonObject | None

    @classmethod
    def of(cls, request: JsonObject) -> "ReviewedRequest":
        resource, kind = request.get("resource") or {}, request.get("kind") or {}
        obj = request.get("object")
        group = str(resource.get("group") or "")
        version = str(kind.get("version") or "")
        kind_group = str(kind.get("group") or "")
        return cls(
            operation=str(request.get("operation") or ""),
            resource=GroupResource(group, str(resource.get("resource") or "")),
            subresource=str(request.get("subResource") or ""),
            namespace=str(request.get("namespace") or ""),
            name=str(request.get("name") or _name_of(obj)),
            user=str((request.get("userInfo") or {}).get("username") or ""),
            dry_run=bool(request.get("dryRun")),
            kind=(
                f"{kind_group}/{version}" if kind_group else version,
                str(kind.get("kind") or ""),
            ),
            object=obj,
            old=request.get("oldObject"),
        )


class AdmissionReviewer:
    """Answers for one cluster. ``user`` is the name that the server knows Kubescene by."""

    def __init__(
        self, scenarios: LiveScenarios, link: Link, scheme: Scheme, store: Store, clock: Clock
    ) -> None:
        self._scenarios = scenarios
        self._edits = ScenarioEdits(scenarios.playing)
        self._link = link
        self._scheme = scheme
        self._store = store
        self._clock = clock
        self.user = ""

    def check(self, asked: ReviewedRequest) -> list[str]:
        """Raises an `ApiError` if the request is refused; otherwise what is to be warned of."""
        if asked.name == PROBE:
            raise ForbiddenError(PROBED)
        if asked.resource == SCENARIOS:
            return self._check_scenario(asked)
        if asked.dry_run or self._is_exempt(asked) or self._is_ours(asked):
            return []
        run = self._scenarios.current
        if run is not None and run.phase in UNDER_WAY:
            resource_type = self._scheme.of_kind(*asked.kind)
            actor = Actor(asked.user)
            refuse_outsider(run.scenario, actor, resource_type, asked.name)
        return []

    def _is_exempt(self, asked: ReviewedRequest) -> bool:
        resource = asked.resource
        is_review = resource.group in REVIEWS or asked.subresource == "token"
        return asked.user in SERVER_USERS or is_review or resource in BOOKKEEPING

    def _is_ours(self, asked: ReviewedRequest) -> bool:
        announced = self._link.under_way
        return asked.user == self.user and announced is not None and matches(announced, asked)

    def _check_scenario(self, asked: ReviewedRequest) -> list[str]:
        if asked.subresource == "status" and not self._is_ours(asked):
            raise ForbiddenError(
                f'{SCENARIOS} "{asked.name}" is forbidden: the status of a Scenario is written by '
                "the engine that plays it"
            )
        if asked.subresource or asked.object is None:
            return []
        warnings: list[str] = []
        request = AdmissionRequest(
            asked.operation.lower(),
            self._scheme.of(SCENARIO),
            "",
            "",
            asked.name,
            Actor(asked.user),
            asked.object,
            asked.old,
            self._store,
            self._clock,
            WriteOptions(warn=warnings.append),
        )
        self._edits.validate(request)
        return warnings


def matches(announced: Announcement, asked: ReviewedRequest) -> bool:
    """Whether a request is the write that is under way."""
    operation, subresource = _OPERATIONS[announced.verb]
    is_operation = asked.operation == operation or (announced.verb, asked.operation) == (
        APPLY_CREATES
    )
    return (
        is_operation
        and asked.resource == announced.resource
        and asked.subresource == (subresource or announced.subresource)
        and asked.namespace in (announced.namespace, _own_namespace(announced))
        and asked.name == announced.name
    )


def _own_namespace(announced: Announcement) -> str:
    """To a webhook, a namespace lives in itself."""
    return announced.name if announced.resource == GroupResource("", "namespaces") else ""


def answer(judge: AdmissionReviewer, review: Any) -> JsonObject:
    """The AdmissionReview that answers one; raises `BadRequestError` for anything else."""
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or not request.get("uid"):
        raise BadRequestError("this is not an AdmissionReview of admission.k8s.io/v1")
    response: JsonObject = {"uid": request["uid"], "allowed": True}
    try:
        warnings = judge.check(ReviewedRequest.of(request))
    except ApiError as error:
        response |= {"allowed": False, "status": error.to_status()}
    else:
        if warnings:
            response["warnings"] = warnings
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def _name_of(obj: Any) -> str:
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    return str((metadata or {}).get("name") or "")
