"""The kinds and the well-known objects that Kubescene's own components speak of."""

from kubescene.api.scheme import GroupResource, GroupVersionKind

EVENT = GroupVersionKind("", "v1", "Event")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
NODE = GroupVersionKind("", "v1", "Node")
POD = GroupVersionKind("", "v1", "Pod")
POD_GROUP = GroupVersionKind("scheduling.k8s.io", "v1alpha2", "PodGroup")
PRIORITY_CLASS = GroupVersionKind("scheduling.k8s.io", "v1", "PriorityClass")
REPLICA_SET = GroupVersionKind("apps", "v1", "ReplicaSet")
REPLICATION_CONTROLLER = GroupVersionKind("", "v1", "ReplicationController")
SERVICE_ACCOUNT = GroupVersionKind("", "v1", "ServiceAccount")
SCENARIO = GroupVersionKind("simulation.kube-scheduler-simulator.x-k8s.io", "v1alpha1", "Scenario")
JOB = GroupVersionKind("batch", "v1", "Job")
CRON_JOB = GroupVersionKind("batch", "v1", "CronJob")
LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")

BOOKKEEPING = frozenset(
    {
        GroupResource("", "events"),
        GroupResource("events.k8s.io", "events"),
        GroupResource(LEASE.group, "leases"),
        GroupResource("autoscaling.k8s.io", "verticalpodautoscalercheckpoints"),
        GroupResource("authentication.k8s.io", "selfsubjectreviews"),
        GroupResource("authentication.k8s.io", "tokenrequests"),
        GroupResource("authentication.k8s.io", "tokenreviews"),
        GroupResource("authorization.k8s.io", "localsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectrulesreviews"),
        GroupResource("authorization.k8s.io", "subjectaccessreviews"),
        GroupResource(SCENARIO.group, "scenarios"),
    }
)
"""Resources that tell how the cluster is doing rather than what it should do: their writes are no
part of a run's story, and to those who follow everything, their changes mean no work."""

API_SERVER = ("default", "kubernetes")
API_SERVER_ADDRESS = "10.96.0.1"
"""The Service of the API server itself: its place, and the address that is kept for it."""
ROOT_CERTIFICATE = "kube-root-ca.crt"
"""The ConfigMap that every namespace of a real cluster has."""

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""An annotation of DaemonSets that the server counts: one at creation, one more with every change
of the template. Clients cannot set it on an update."""
