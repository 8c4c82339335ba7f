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


class FieldKind(StrEnum):
    """What a field holds."""

    NUMBER = "a whole number"
    TEXT = "a text"
    FLAG = "true or false"
    TEXTS = "a list of texts"
    OBJECT = "an object"


@dataclass(frozen=True, slots=True)
class OperationFields:
    """What an operation must and may say."""

    required: Mapping[str, FieldKind]
    optional: Mapping[str, FieldKind]

    def kind_of(self, name: str) -> FieldKind | None:
        return self.required.get(name) or self.optional.get(name)


@dataclass(frozen=True, slots=True)
class WorkloadOperation:
    """One operation, its parameters filled in. ``path`` is its place in the file."""

    code: OpCode
    fields: JsonObject
    path: str
    index: int

    def get(self, name: str, default: Any = None) -> Any:
        return self.fields.get(name, default)


_COUNT = {"count": FieldKind.NUMBER}
_TEMPLATE = {"templatePath": FieldKind.TEXT}
_SELECTED = {"namespaces": FieldKind.TEXTS, "labelSelector": FieldKind.OBJECT}

FIELDS: Mapping[OpCode, OperationFields] = {
    OpCode.CREATE_NODES: OperationFields(
        _COUNT,
        {
            "nodeTemplatePath": FieldKind.TEXT,
            "nodeAllocatableStrategy": FieldKind.OBJECT,
            "labelNodePrepareStrategy": FieldKind.OBJECT,
            "uniqueNodeLabelStrategy": FieldKind.OBJECT,
        },
    ),
    OpCode.CREATE_NAMESPACES: OperationFields(
        {"prefix": FieldKind.TEXT, **_COUNT}, {"namespaceTemplatePath": FieldKind.TEXT}
    ),
    OpCode.CREATE_PODS: OperationFields(
        _COUNT,
        {
            "podTemplatePath": FieldKind.TEXT,
            "namespace": FieldKind.TEXT,
            "collectMetrics": FieldKind.FLAG,
            "skipWaitToCompletion": FieldKind.FLAG,
            "steadyState": FieldKind.FLAG,
            "duration": FieldKind.TEXT,
            "persistentVolumeTemplatePath": FieldKind.TEXT,
            "persistentVolumeClaimTemplatePath": FieldKind.TEXT,
        },
    ),
    OpCode.CREATE_POD_SETS: OperationFields(
        {**_COUNT, "namespacePrefix": FieldKind.TEXT, "createPodsOp": FieldKind.OBJECT}, {}
    ),
    OpCode.DELETE_PODS: OperationFields(
        {"namespace": FieldKind.TEXT},
        {
            "labelSelector": FieldKind.OBJECT,
            "deletePodsPerSecond": FieldKind.NUMBER,
            "skipWaitToCompletion": FieldKind.FLAG,
        },
    ),
    OpCode.CHURN: OperationFields(
        {"mode": FieldKind.TEXT, "templatePaths": FieldKind.TEXTS},
        {
            "number": FieldKind.NUMBER,
            "intervalMilliseconds": FieldKind.NUMBER,
            "namespace": FieldKind.TEXT,
        },
    ),
    OpCode.BARRIER: OperationFields({}, {**_SELECTED, "stageRequirement": FieldKind.TEXT}),
    OpCode.SLEEP: OperationFields({"duration": FieldKind.TEXT}, {}),
    OpCode.START_COLLECTING: OperationFields(
        {"namespaces": FieldKind.TEXTS}, {"name": FieldKind.TEXT, "labelSelector": FieldKind.OBJECT}
    ),
    OpCode.STOP_COLLECTING: OperationFields({}, {}),
    OpCode.CREATE_ANY: OperationFields(_TEMPLATE, {"namespace": FieldKind.TEXT, **_COUNT}),
    OpCode.UPDATE_ANY: OperationFields(
        _TEMPLATE,
        {
            "namespace": FieldKind.TEXT,
            **_COUNT,
            "updatePerSecond": FieldKind.NUMBER,
            "subresources": FieldKind.TEXTS,
        },
    ),
    OpCode.CREATE_DRIVER: OperationFields(
        {
            "driverName": FieldKind.TEXT,
            "nodes": FieldKind.TEXT,
            "maxClaimsPerNode": FieldKind.NUMBER,
        },
        {},
    ),
    OpCode.CREATE_CLAIMS: OperationFields({**_TEMPLATE, "namespace": FieldKind.TEXT, **_COUNT}, {}),
    OpCode.ALLOCATE_CLAIMS: OperationFields({"namespace": FieldKind.TEXT}, {}),
}


def is_of(kind: FieldKind, value: Any) -> bool:
    """Whether a value is of the kind that a field holds."""
    if kind is FieldKind.NUMBER:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if kind is FieldKind.TEXTS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    wanted: dict[FieldKind, type] = {
        FieldKind.TEXT: str,
        FieldKind.FLAG: bool,
        FieldKind.OBJECT: dict,
    }
    return isinstance(value, wanted[kind])
