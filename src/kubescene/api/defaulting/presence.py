"""Members that the server always prints, though nobody set them.

The Go types embed many parts as structs and mark many numbers and texts as required. Such members
are in every response, as ``{}``, ``0`` or ``""``, and clients rely on that: a typed client reads
``replica_set.status.replicas`` without asking whether there is a status. Lists and times that
would be printed as null are left out, since absent and null mean the same to every client.

The kinds whose defaulters go into nested parts (containers, templates, claims) see to
those themselves; this table has the outer members, laid over whatever is absent.
"""

from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_STATUS: JsonObject = {"status": {}}
_LOAD_BALANCER: JsonObject = {"status": {"loadBalancer": {}}}
_REPLICAS: JsonObject = {"status": {"replicas": 0}}
_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
_DAEMON_COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
)
_BUDGET_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")

_CORE: dict[str, JsonObject] = {
    "Event": {"source": {}, "reportingComponent": "", "reportingInstance": ""},
    "Namespace": {"spec": {}},
    "Node": {
        "spec": {},
        "status": {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": dict.fromkeys(_NODE_INFO, ""),
        },
    },
    "Pod": _STATUS,
    "ReplicationController": _REPLICAS,
    "ResourceQuota": {"spec": {}, "status": {}},
    "Service": _LOAD_BALANCER,
}

_OTHERS: dict[tuple[str, str], JsonObject] = {
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"): _STATUS,
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): {
        "status": {"acceptedNames": {"plural": "", "kind": ""}}
    },
    ("apiregistration.k8s.io/v1", "APIService"): _STATUS,
    ("apps/v1", "DaemonSet"): {"status": dict.fromkeys(_DAEMON_COUNTS, 0)},
    ("apps/v1", "Deployment"): _STATUS,
    ("apps/v1", "ReplicaSet"): _REPLICAS,
    ("apps/v1", "StatefulSet"): {
        "spec": {"serviceName": ""},
        "status": {"replicas": 0, "availableReplicas": 0},
    },
    ("autoscaling/v1", "HorizontalPodAutoscaler"): {
        "status": {"currentReplicas": 0, "desiredReplicas": 0}
    },
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {"status": {"desiredReplicas": 0}},
    ("batch/v1", "CronJob"): _STATUS,
    ("batch/v1", "Job"): _STATUS,
    ("certificates.k8s.io/v1", "CertificateSigningRequest"): _STATUS,
    ("events.k8s.io/v1", "Event"): {"deprecatedSource": {}},
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"): _STATUS,
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration"): _STATUS,
    ("networking.k8s.io/v1", "Ingress"): _LOAD_BALANCER,
    ("networking.k8s.io/v1", "NetworkPolicy"): {"spec": {"podSelector": {}}},
    ("policy/v1", "PodDisruptionBudget"): {"status": dict.fromkeys(_BUDGET_COUNTS, 0)},
    ("resource.k8s.io/v1", "ResourceClaim"): _STATUS,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): {"spec": {"metadata": {}}},
    ("resource.k8s.io/v1beta2", "ResourceClaim"): _STATUS,
    ("resource.k8s.io/v1beta2", "ResourceClaimTemplate"): {"spec": {"metadata": {}}},
    ("storage.k8s.io/v1", "VolumeAttachment"): {"status": {"attached": False}},
}

ALWAYS_PRESENT: dict[GroupVersionKind, JsonObject] = {
    **{GroupVersionKind("", "v1", kind): zeros for kind, zeros in _CORE.items()},
    **{GroupVersionKind.of(version, kind): zeros for (version, kind), zeros in _OTHERS.items()},
}


def completed(obj: JsonObject, zeros: JsonObject) -> JsonObject:
    """``obj`` with ``zeros`` laid where members are absent, at any depth."""
    changes: JsonObject = {}
    for key, zero in zeros.items():
        value = obj.get(key)
        if value is None:
            changes[key] = dict(zero) if type(zero) is dict else zero
        elif zero and type(zero) is dict:
            done = completed(value, zero)
            if done is not value:
                changes[key] = done
    return {**obj, **changes} if changes else obj
