"""Objects that nobody has written yet, as Go's zero values look in JSON.

A created object is compared with the blank one of its kind. Structs that are there anyway (fields
of Go structs that are no pointers) are not something that a writer has added: only their fields
are. The same goes for empty texts that are there anyway. Spelled here is what is not the same for
all kinds and makes a difference.
"""

from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_TEMPLATE: JsonObject = {"metadata": {}, "spec": {"containers": None}}
_JOB: JsonObject = {"template": _TEMPLATE}
_UNIFORM: JsonObject = {"metadata": {}, "spec": {}, "status": {}}

_PARTS: dict[tuple[str, str], JsonObject] = {
    ("", "Event"): {
        "involvedObject": {},
        "reportingComponent": "",
        "reportingInstance": "",
        "source": {},
    },
    ("", "PersistentVolumeClaim"): {"spec": {"resources": {}}},
    ("", "Pod"): {"spec": {"containers": None}},
    ("", "PodTemplate"): {"template": _TEMPLATE},
    ("", "Service"): {"status": {"loadBalancer": {}}},
    ("apps", "DaemonSet"): {"spec": {"template": _TEMPLATE, "updateStrategy": {}}},
    ("apps", "Deployment"): {"spec": {"strategy": {}, "template": _TEMPLATE}},
    ("apps", "ReplicaSet"): {"spec": {"template": _TEMPLATE}},
    ("apps", "StatefulSet"): {
        "spec": {"serviceName": "", "template": _TEMPLATE, "updateStrategy": {}}
    },
    ("autoscaling", "HorizontalPodAutoscaler"): {"spec": {"scaleTargetRef": {}}},
    ("batch", "CronJob"): {"spec": {"jobTemplate": {"metadata": {}, "spec": _JOB}}},
    ("batch", "Job"): {"spec": _JOB},
    ("events.k8s.io", "Event"): {"deprecatedSource": {}, "regarding": {}},
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): {"spec": {"priorityLevelConfiguration": {}}},
    ("resource.k8s.io", "DeviceTaintRule"): {"spec": {"taint": {}}},
    ("resource.k8s.io", "ResourceClaim"): {"spec": {"devices": {"requests": None}}},
    ("resource.k8s.io", "ResourceClaimTemplate"): {
        "spec": {"metadata": {}, "spec": {"devices": {"requests": None}}}
    },
    ("resource.k8s.io", "ResourceSlice"): {"spec": {"pool": {}}},
    ("scheduling.k8s.io", "PodGroup"): {"spec": {"schedulingPolicy": {}}},
    ("scheduling.k8s.io", "Workload"): {"spec": {"podGroupTemplates": None}},
    ("storage.k8s.io", "CSINode"): {"spec": {"drivers": None}},
    ("storage.k8s.io", "VolumeAttachment"): {"spec": {"source": {}}},
}

_BLANK = {kind: {**_UNIFORM, **parts} for kind, parts in _PARTS.items()}


def blank_object(gvk: GroupVersionKind) -> JsonObject:
    """The blank object of a built-in kind. Custom kinds are not typed: theirs is empty."""
    return _BLANK.get((gvk.group, gvk.kind), _UNIFORM)
