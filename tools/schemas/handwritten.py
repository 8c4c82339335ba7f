"""What no package tells about the built-in kinds: short names, categories, order, storage.

Checked by hand against the discovery documents of Kubernetes v1.36.4 (``api/discovery``), where
the storage version shows as ``storageVersionHash``.
"""

CONNECT_VERBS = ("create", "get")
PROXY_VERBS = ("create", "delete", "get", "patch", "update")

GROUP_ORDER = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "storagemigration.k8s.io",
)

SHORT_NAMES = {
    "certificatesigningrequests": ["csr"],
    "componentstatuses": ["cs"],
    "configmaps": ["cm"],
    "cronjobs": ["cj"],
    "customresourcedefinitions": ["crd", "crds"],
    "daemonsets": ["ds"],
    "deployments": ["deploy"],
    "endpoints": ["ep"],
    "events": ["ev"],
    "horizontalpodautoscalers": ["hpa"],
    "ingresses": ["ing"],
    "ipaddresses": ["ip"],
    "limitranges": ["limits"],
    "namespaces": ["ns"],
    "networkpolicies": ["netpol"],
    "nodes": ["no"],
    "persistentvolumeclaims": ["pvc"],
    "persistentvolumes": ["pv"],
    "poddisruptionbudgets": ["pdb"],
    "pods": ["po"],
    "priorityclasses": ["pc"],
    "replicasets": ["rs"],
    "replicationcontrollers": ["rc"],
    "resourcequotas": ["quota"],
    "serviceaccounts": ["sa"],
    "services": ["svc"],
    "statefulsets": ["sts"],
    "storageclasses": ["sc"],
    "volumeattributesclasses": ["vac"],
}

CATEGORIES = {
    "all": [
        "cronjobs",
        "daemonsets",
        "deployments",
        "horizontalpodautoscalers",
        "jobs",
        "pods",
        "replicasets",
        "replicationcontrollers",
        "services",
        "statefulsets",
    ],
    "api-extensions": [
        "apiservices",
        "customresourcedefinitions",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ],
}

STORAGE = {
    ("autoscaling", "horizontalpodautoscalers"): "autoscaling/v2",
    ("certificates.k8s.io", "clustertrustbundles"): "certificates.k8s.io/v1beta1",
    ("coordination.k8s.io", "leasecandidates"): "coordination.k8s.io/v1beta1",
    ("events.k8s.io", "events"): "v1",
    ("networking.k8s.io", "ipaddresses"): "networking.k8s.io/v1",
    ("networking.k8s.io", "servicecidrs"): "networking.k8s.io/v1",
    ("resource.k8s.io", "deviceclasses"): "resource.k8s.io/v1",
    ("resource.k8s.io", "devicetaintrules"): "resource.k8s.io/v1alpha3",
    ("resource.k8s.io", "resourceclaims"): "resource.k8s.io/v1",
    ("resource.k8s.io", "resourceclaimtemplates"): "resource.k8s.io/v1",
    ("resource.k8s.io", "resourceslices"): "resource.k8s.io/v1",
    ("storage.k8s.io", "volumeattributesclasses"): "storage.k8s.io/v1",
    # Upstream still writes v1beta1 for one release; a server that serves v1 alone cannot.
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies",
    ): "admissionregistration.k8s.io/v1",
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): (
        "admissionregistration.k8s.io/v1"
    ),
}
"""Where objects are written, for resources served in more than one group or version."""

CONNECT_SUBRESOURCES: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "nodes": {"proxy": ("NodeProxyOptions", PROXY_VERBS)},
    "pods": {
        "attach": ("PodAttachOptions", CONNECT_VERBS),
        "exec": ("PodExecOptions", CONNECT_VERBS),
        "portforward": ("PodPortForwardOptions", CONNECT_VERBS),
        "proxy": ("PodProxyOptions", PROXY_VERBS),
    },
    "services": {"proxy": ("ServiceProxyOptions", PROXY_VERBS)},
}
"""Subresources that hand a connection through; models of object bodies do not know them."""

VERBS_NOT_SERVED = {("", "componentstatuses"): {"watch"}}
"""OpenAPI lists these paths, the server does not offer them."""
