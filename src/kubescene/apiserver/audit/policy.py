"""An audit Policy (``audit.k8s.io/v1``): which requests are told, and how much of each.

The first rule that fits says so; a request that no rule fits is not told.
"""

from collections.abc import Iterator
from enum import Enum, StrEnum
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from kubescene.api.text.reading import ReadingError
from kubescene.api.text.yaml_text import read_yaml
from kubescene.apiserver.access import Attributes
from kubescene.errors import ConfigurationError


class AuditLevel(Enum):
    """How much is told of a request: each tells what those before it tell."""

    NONE = "None"
    METADATA = "Metadata"
    REQUEST = "Request"
    REQUEST_RESPONSE = "RequestResponse"

    @property
    def tells_request(self) -> bool:
        return self in (AuditLevel.REQUEST, AuditLevel.REQUEST_RESPONSE)

    @property
    def tells_response(self) -> bool:
        return self is AuditLevel.REQUEST_RESPONSE


class AuditStage(StrEnum):
    """When an event is written."""

    RECEIVED = "RequestReceived"
    STARTED = "ResponseStarted"
    """Only of what goes on for long: the headers are out, the body is not."""
    COMPLETE = "ResponseComplete"
    PANIC = "Panic"


class GroupResources(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True
):
    """Resources of one API group: none stands for all of them."""

    group: str = ""
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()

    def names(self, asked: Attributes) -> bool:
        """Whether it names what is asked for: ``pods``, ``pods/log``, ``pods/*``, ``*/scale``."""
        if self.group != asked.group:
            return False
        if not self.resources:
            return True
        if self.resource_names and asked.name not in self.resource_names:
            return False
        return any(_names(each, asked) for each in self.resources)

    def faults(self) -> Iterator[str]:
        if self.resource_names and not self.resources:
            yield "resourceNames: they need resources beside them"
        if "/" in self.group or self.group in ("*", "v1"):
            yield f'group: {self.group!r} is no API group; "" is that of pods'


def _names(resource: str, asked: Attributes) -> bool:
    if resource in ("*", asked.combined, f"{asked.resource}/*"):
        return True
    return bool(asked.subresource) and resource == f"*/{asked.subresource}"


class AuditRule(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True
):
    """Requests, and how much is told of them."""

    level: AuditLevel
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")
    omit_stages: tuple[AuditStage, ...] = ()
    omit_managed_fields: bool | None = None

    def fits(self, user: str, groups: tuple[str, ...], verb: str, asked: Attributes) -> bool:
        if self.users and user not in self.users:
            return False
        if self.user_groups and not set(self.user_groups) & set(groups):
            return False
        if self.verbs and verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return self._fits_resource(asked)
        if self.non_resource_urls:
            return bool(asked.path) and any(
                _fits(each, asked.path) for each in self.non_resource_urls
            )
        return True

    def faults(self) -> Iterator[str]:
        if self.non_resource_urls and (self.resources or self.namespaces):
            yield "nonResourceURLs: a rule is about URLs or about resources, not about both"
        for place, url in enumerate(self.non_resource_urls):
            if url != "*" and (not url.startswith("/") or "*" in url[:-1]):
                yield f"nonResourceURLs[{place}]: {url!r} is no path, with or without * at its end"
        for place, group in enumerate(self.resources):
            yield from (f"resources[{place}].{fault}" for fault in group.faults())

    def _fits_resource(self, asked: Attributes) -> bool:
        if asked.path or (self.namespaces and asked.namespace not in self.namespaces):
            return False
        return not self.resources or any(each.names(asked) for each in self.resources)


def _fits(pattern: str, path: str) -> bool:
    return path == pattern or (pattern.endswith("*") and path.startswith(pattern[:-1]))


class AuditVerdict(NamedTuple):
    """What is told of one request."""

    level: AuditLevel
    omitted: frozenset[AuditStage]
    without_managed_fields: bool


UNTOLD = AuditVerdict(AuditLevel.NONE, frozenset(), without_managed_fields=False)


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class AuditPolicy(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True
):
    """The whole of it."""

    api_version: Literal["audit.k8s.io/v1"] = "audit.k8s.io/v1"
    kind: Literal["Policy"] = "Policy"
    metadata: _Metadata = _Metadata()
    rules: tuple[AuditRule, ...] = ()
    omit_stages: tuple[AuditStage, ...] = ()
    omit_managed_fields: bool = False

    def verdict(
        self, user: str, groups: tuple[str, ...], verb: str, asked: Attributes
    ) -> AuditVerdict:
        for rule in self.rules:
            if rule.fits(user, groups, verb, asked):
                omits = rule.omit_managed_fields
                return AuditVerdict(
                    rule.level,
                    frozenset((*self.omit_stages, *rule.omit_stages)),
                    without_managed_fields=self.omit_managed_fields if omits is None else omits,
                )
        return UNTOLD

    def faults(self) -> Iterator[str]:
        """What kube-apiserver refuses in a policy that can be read."""
        for number, rule in enumerate(self.rules):
            yield from (f"rules[{number}].{fault}" for fault in rule.faults())


METADATA_OF_ALL = AuditPolicy(rules=(AuditRule(level=AuditLevel.METADATA),))
"""What is told where no file says otherwise."""


def read_policy(path: Path) -> AuditPolicy:
    """The policy of a file; raises `ConfigurationError` that says what is wrong with it."""
    try:
        documents = [each.value for each in read_yaml(path.read_bytes()) if each.value is not None]
        if len(documents) != 1:
            raise ConfigurationError(
                f"{path}: an audit policy is one document, not {len(documents)}"
            )
        policy = msgspec.convert(documents[0], AuditPolicy)
    except (OSError, ReadingError, msgspec.ValidationError) as error:
        raise ConfigurationError(f"{path} holds no audit Policy: {error}") from None
    if not isinstance(documents[0], dict) or not {"apiVersion", "kind"} <= documents[0].keys():
        raise ConfigurationError(f"{path} holds no audit Policy: apiVersion and kind are missing")
    if faults := [*policy.faults()]:
        raise ConfigurationError(f"{path}: {'; '.join(faults)}")
    return policy
