"""The least that a user must write is valid once defaults are filled in."""

from typing import Any

import pytest

from kubescene.api.builtin import builtin_scheme
from kubescene.api.defaulting.defaults import apply_defaults
from kubescene.api.validation import validate_create

POD_SPEC = {"containers": [{"name": "main", "image": "nginx"}]}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": POD_SPEC}
SELECTOR = {"matchLabels": {"app": "web"}}
CLAIM_SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}

MANIFESTS: dict[str, dict[str, Any]] = {
    "v1 Pod": {"spec": POD_SPEC},
    "v1 Node": {},
    "v1 Namespace": {},
    "v1 Service": {"spec": {"ports": [{"port": 80}]}},
    "v1 ConfigMap": {"data": {"key": "value"}},
    "v1 Secret": {},
    "v1 ServiceAccount": {},
    "v1 PersistentVolumeClaim": {"spec": CLAIM_SPEC},
    "v1 PersistentVolume": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/data"},
        }
    },
    "v1 ReplicationController": {"spec": {"template": TEMPLATE}},
    "apps/v1 ReplicaSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "apps/v1 Deployment": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "apps/v1 StatefulSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "apps/v1 DaemonSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "batch/v1 CronJob": {
        "spec": {
            "schedule": "@hourly",
            "jobTemplate": {
                "spec": {"template": {"spec": {**POD_SPEC, "restartPolicy": "OnFailure"}}}
            },
        }
    },
    "autoscaling/v1 HorizontalPodAutoscaler": {
        "spec": {"maxReplicas": 3, "scaleTargetRef": TARGET}
    },
    "autoscaling/v2 HorizontalPodAutoscaler": {
        "spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, "behavior": {}}
    },
    "policy/v1 PodDisruptionBudget": {"spec": {"minAvailable": "50%", "selector": SELECTOR}},
    "scheduling.k8s.io/v1 PriorityClass": {"value": 1000},
    "storage.k8s.io/v1 StorageClass": {"provisioner": "example.com/disks"},
    "coordination.k8s.io/v1 Lease": {},
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_minimal_manifest_is_valid_once_defaulted(kind: str) -> None:
    api_version, _, name = kind.partition(" ")
    resource_type = builtin_scheme().of_kind(api_version, name)
    written = {
        "apiVersion": api_version,
        "kind": name,
        "metadata": {"name": "web"},
        **MANIFESTS[kind],
    }
    obj = apply_defaults(written, resource_type.gvk)
    namespace = "default" if resource_type.namespaced else None
    assert validate_create(obj, resource_type, namespace=namespace) == []
