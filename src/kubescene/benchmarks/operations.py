"""The op codes of scheduler_perf and the fields that each has."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kubescene.types import JsonObject


class OpCode(StrEnum):
    CREATE_NODES = "createNodes"
    CREATE_NAMESPACES = "createNamespaces"
    CREATE_PODS = "createPods"
    CREATE_POD_SETS = "createPodSets"
    DELETE_PODS = "deletePods"
    CHURN = "churn"
    BARRIER = "barrier"
    SLEEP = "sleep"
    START_COLLECTING = "startCollectingMetrics"
    STOP_COLLECTING = "stopCollectingMetrics"
    CREATE_ANY = "createAny"
    UPDATE_ANY = "updateAny"
    CREATE_DRIVER = "createResourceDriver"
    CREATE_CLAIMS = "createResourceClaims"
    ALLOCATE_CLAIMS = "allocResourceClaims"


class Kind(StrEnum):
    """What a field holds."""

    NUMBER = "a whole number"
    TEXT = "a text"
    FLAG = "true or false"
    TEXTS = "a list of texts"
    OBJECT = "an object"


@dataclass(frozen=True, slots=True)
class Fields:
    """What an operation must and may say."""

    required: Mapping[str, Kind]
    optional: Mapping[str, Kind]

    def kind_of(self, name: str) -> Kind | None:
        return self.required.get(name) or self.optional.get(name)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, its parameters filled in. ``path`` is its place in the file."""

    code: OpCode
    fields: JsonObject
    path: str
    index: int

    def get(self, name: str, default: Any = None) -> Any:
        return self.fields.get(name, default)


_COUNT = {"count": Kind.NUMBER}
_TEMPLATE = {"templatePath": Kind.TEXT}
_SELECTED = {"namespaces": Kind.TEXTS, "labelSelector": Kind.OBJECT}

FIELDS: Mapping[OpCode, Fields] = {
    OpCode.CREATE_NODES: Fields(
        _COUNT,
        {
            "nodeTemplatePath": Kind.TEXT,
            "nodeAllocatableStrategy": Kind.OBJECT,
            "labelNodePrepareStrategy": Kind.OBJECT,
            "uniqueNodeLabelStrategy": Kind.OBJECT,
        },
    ),
    OpCode.CREATE_NAMESPACES: Fields(
        {"prefix": Kind.TEXT, **_COUNT}, {"namespaceTemplatePath": Kind.TEXT}
    ),
    OpCode.CREATE_PODS: Fields(
        _COUNT,
        {
            "podTemplatePath": Kind.TEXT,
            "namespace": Kind.TEXT,
            "collectMetrics": Kind.FLAG,
            "skipWaitToCompletion": Kind.FLAG,
            "steadyState": Kind.FLAG,
            "duration": Kind.TEXT,
            "persistentVolumeTemplatePath": Kind.TEXT,
            "persistentVolumeClaimTemplatePath": Kind.TEXT,
        },
    ),
    OpCode.CREATE_POD_SETS: Fields(
        {**_COUNT, "namespacePrefix": Kind.TEXT, "createPodsOp": Kind.OBJECT}, {}
    ),
    OpCode.DELETE_PODS: Fields(
        {"namespace": Kind.TEXT},
        {
            "labelSelector": Kind.OBJECT,
            "deletePodsPerSecond": Kind.NUMBER,
            "skipWaitToCompletion": Kind.FLAG,
        },
    ),
    OpCode.CHURN: Fields(
        {"mode": Kind.TEXT, "templatePaths": Kind.TEXTS},
        {"number": Kind.NUMBER, "intervalMilliseconds": Kind.NUMBER, "namespace": Kind.TEXT},
    ),
    OpCode.BARRIER: Fields({}, {**_SELECTED, "stageRequirement": Kind.TEXT}),
    OpCode.SLEEP: Fields({"duration": Kind.TEXT}, {}),
    OpCode.START_COLLECTING: Fields(
        {"namespaces": Kind.TEXTS}, {"name": Kind.TEXT, "labelSelector": Kind.OBJECT}
    ),
    OpCode.STOP_COLLECTING: Fields({}, {}),
    OpCode.CREATE_ANY: Fields(_TEMPLATE, {"namespace": Kind.TEXT, **_COUNT}),
    OpCode.UPDATE_ANY: Fields(
        _TEMPLATE,
        {
            "namespace": Kind.TEXT,
            **_COUNT,
            "updatePerSecond": Kind.NUMBER,
            "subresources": Kind.TEXTS,
        },
    ),
    OpCode.CREATE_DRIVER: Fields(
        {"driverName": Kind.TEXT, "nodes": Kind.TEXT, "maxClaimsPerNode": Kind.NUMBER}, {}
    ),
    OpCode.CREATE_CLAIMS: Fields({**_TEMPLATE, "namespace": Kind.TEXT, **_COUNT}, {}),
    OpCode.ALLOCATE_CLAIMS: Fields({"namespace": Kind.TEXT}, {}),
}


def is_of(kind: Kind, value: Any) -> bool:
    """Whether a value is of the kind that a field holds."""
    if kind is Kind.NUMBER:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if kind is Kind.TEXTS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    wanted: dict[Kind, type] = {Kind.TEXT: str, Kind.FLAG: bool, Kind.OBJECT: dict}
    return isinstance(value, wanted[kind])
