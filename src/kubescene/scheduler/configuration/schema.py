"""The fields of ``kubescheduler.config.k8s.io/v1``, as published: names and types, nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{GROUP}/v1"
KIND = "KubeSchedulerConfiguration"


class Scalar(StrEnum):
    """What a value that holds no others may be, in words for whoever wrote something else."""

    TEXT = "text"
    BOOLEAN = "true or false"
    INT32 = "a whole number of 32 bits"
    INT64 = "a whole number of 64 bits"
    FLOAT = "a number"
    DURATION = "a duration such as 90s or 1h30m"
    BYTES = "text in base64"
    ANYTHING = "anything"


@dataclass(frozen=True, slots=True)
class ListOf:
    item: "Shape"


@dataclass(frozen=True, slots=True)
class MapOf:
    value: "Shape"


@dataclass(frozen=True, slots=True)
class Fields:
    members: Mapping[str, "Shape"]


Shape: TypeAlias = Scalar | ListOf | MapOf | Fields

TYPE_META: Mapping[str, Shape] = {"apiVersion": Scalar.TEXT, "kind": Scalar.TEXT}

PLUGIN = Fields({"name": Scalar.TEXT, "weight": Scalar.INT32})
PLUGIN_SET = Fields({"enabled": ListOf(PLUGIN), "disabled": ListOf(PLUGIN)})
MULTI_POINT = "multiPoint"
PLUGIN_SETS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    MULTI_POINT,
    "placementGenerate",
    "placementScore",
)

PROFILE = Fields(
    {
        "schedulerName": Scalar.TEXT,
        "percentageOfNodesToScore": Scalar.INT32,
        "plugins": Fields(dict.fromkeys(PLUGIN_SETS, PLUGIN_SET)),
        "pluginConfig": ListOf(Fields({"name": Scalar.TEXT, "args": Scalar.ANYTHING})),
    }
)

TLS = Fields(
    {
        "insecure": Scalar.BOOLEAN,
        "serverName": Scalar.TEXT,
        "certFile": Scalar.TEXT,
        "keyFile": Scalar.TEXT,
        "caFile": Scalar.TEXT,
        "certData": Scalar.BYTES,
        "keyData": Scalar.BYTES,
        "caData": Scalar.BYTES,
    }
)

EXTENDER = Fields(
    {
        "urlPrefix": Scalar.TEXT,
        "filterVerb": Scalar.TEXT,
        "preemptVerb": Scalar.TEXT,
        "prioritizeVerb": Scalar.TEXT,
        "weight": Scalar.INT64,
        "bindVerb": Scalar.TEXT,
        "enableHTTPS": Scalar.BOOLEAN,
        "tlsConfig": TLS,
        "httpTimeout": Scalar.DURATION,
        "nodeCacheCapable": Scalar.BOOLEAN,
        "managedResources": ListOf(
            Fields({"name": Scalar.TEXT, "ignoredByScheduler": Scalar.BOOLEAN})
        ),
        "ignorable": Scalar.BOOLEAN,
    }
)

LEADER_ELECTION = Fields(
    {
        "leaderElect": Scalar.BOOLEAN,
        "leaseDuration": Scalar.DURATION,
        "renewDeadline": Scalar.DURATION,
        "retryPeriod": Scalar.DURATION,
        "resourceLock": Scalar.TEXT,
        "resourceName": Scalar.TEXT,
        "resourceNamespace": Scalar.TEXT,
    }
)

CLIENT_CONNECTION = Fields(
    {
        "kubeconfig": Scalar.TEXT,
        "acceptContentTypes": Scalar.TEXT,
        "contentType": Scalar.TEXT,
        "qps": Scalar.FLOAT,
        "burst": Scalar.INT32,
    }
)

CONFIGURATION = Fields(
    {
        **TYPE_META,
        "parallelism": Scalar.INT32,
        "leaderElection": LEADER_ELECTION,
        "clientConnection": CLIENT_CONNECTION,
        "enableProfiling": Scalar.BOOLEAN,
        "enableContentionProfiling": Scalar.BOOLEAN,
        "percentageOfNodesToScore": Scalar.INT32,
        "podInitialBackoffSeconds": Scalar.INT64,
        "podMaxBackoffSeconds": Scalar.INT64,
        "profiles": ListOf(PROFILE),
        "extenders": ListOf(EXTENDER),
        "delayCacheUntilActive": Scalar.BOOLEAN,
    }
)
