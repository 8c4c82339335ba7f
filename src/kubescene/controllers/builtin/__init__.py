"""The controllers of kube-controller-manager, one module each, and the table of them.

A new one is a module here and a row in `table`: its place is its place in the settle order.
"""

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kubescene.actors import Component
from kubescene.controllers.authoring import controller_from
from kubescene.controllers.builtin.autoscaling.flags import DEFAULTS as AUTOSCALING
from kubescene.controllers.builtin.autoscaling.flags import AutoscalingSettings
from kubescene.controllers.builtin.autoscaling.horizontal import horizontal_autoscaler
from kubescene.controllers.builtin.autoscaling.keda.controller import keda_operator
from kubescene.controllers.builtin.autoscaling.keda.kinds import NAME as KEDA
from kubescene.controllers.builtin.autoscaling.keda.kinds import OFFERS as KEDA_OFFERS
from kubescene.controllers.builtin.autoscaling.knative.controller import knative_autoscaler
from kubescene.controllers.builtin.autoscaling.knative.kinds import NAME as KNATIVE
from kubescene.controllers.builtin.autoscaling.knative.kinds import OFFERS as KNATIVE_OFFERS
from kubescene.controllers.builtin.autoscaling.metric_series import MetricSeriesReconciler
from kubescene.controllers.builtin.autoscaling.plugins.controller import plugin_autoscalers
from kubescene.controllers.builtin.autoscaling.plugins.kinds import NAME as PLUGINS
from kubescene.controllers.builtin.autoscaling.plugins.kinds import OFFERS as PLUGIN_OFFERS
from kubescene.controllers.builtin.autoscaling.vertical import controllers as vertical
from kubescene.controllers.builtin.autoscaling.vertical.kinds import OFFERS as VERTICAL
from kubescene.controllers.builtin.cluster_role_aggregation import cluster_role_aggregation
from kubescene.controllers.builtin.deletion.event_expiry import event_expiry
from kubescene.controllers.builtin.deletion.garbage_collector import garbage_collector
from kubescene.controllers.builtin.furnishing import api_server_service, root_certificates
from kubescene.controllers.builtin.namespaces.namespace import namespace
from kubescene.controllers.builtin.namespaces.resource_quota import resource_quota
from kubescene.controllers.builtin.nodes.node_groups import DEFINITIONS as NODE_GROUPS
from kubescene.controllers.builtin.nodes.node_lifecycle import node_lifecycle
from kubescene.controllers.builtin.nodes.node_provider import node_provider
from kubescene.controllers.builtin.nodes.nodeset import NodeSetReconciler
from kubescene.controllers.builtin.nodes.pod_garbage_collector import pod_garbage_collector
from kubescene.controllers.builtin.nodes.taint_eviction import taint_eviction
from kubescene.controllers.builtin.outages.definition import DEFINITION as OUTAGES
from kubescene.controllers.builtin.outages.reconciler import outages
from kubescene.controllers.builtin.services.endpoint_slices import endpoint_slices
from kubescene.controllers.builtin.services.endpoints import endpoints
from kubescene.controllers.builtin.services.mirrored_endpoints import mirrored_endpoints
from kubescene.controllers.builtin.storage.ephemeral_volume import ephemeral_volume
from kubescene.controllers.builtin.storage.persistent_volume_binder import persistent_volume_binder
from kubescene.controllers.builtin.storage.resource_claim import resource_claim
from kubescene.controllers.builtin.storage.storage_protection import storage_protection
from kubescene.controllers.builtin.traffic.definition import DEFINITION as TRAFFICS
from kubescene.controllers.builtin.traffic.reconciler import traffic
from kubescene.controllers.builtin.workloads.daemon_sets.daemonset import daemonset
from kubescene.controllers.builtin.workloads.deployments.deployment import deployment
from kubescene.controllers.builtin.workloads.disruption import disruption
from kubescene.controllers.builtin.workloads.jobs.cronjob import cronjob
from kubescene.controllers.builtin.workloads.jobs.job import job
from kubescene.controllers.builtin.workloads.jobs.ttl_after_finished import ttl_after_finished
from kubescene.controllers.builtin.workloads.replica_sets.replicaset import (
    replicaset,
    replicationcontroller,
)
from kubescene.controllers.builtin.workloads.stateful_sets.statefulset import statefulset
from kubescene.controllers.kubelet import KUBELET, NO_DELAYS, KubeletDelays, kubelet
from kubescene.controllers.kubelet.behaviour import WorkloadBehaviour
from kubescene.controllers.kubelet.leases import node_heartbeats
from kubescene.controllers.registrations import Registration

if TYPE_CHECKING:
    from kubescene.autoscalers.available import PluginSource


def table(
    *,
    delays: KubeletDelays = NO_DELAYS,
    workloads: Sequence[WorkloadBehaviour] = (),
    events: bool = False,
    gates: Collection[str] = (),
    namespace_delay: int = 0,
    heartbeats: bool = False,
    machines_at_once: bool = False,
    furnished: bool = False,
    autoscaling: AutoscalingSettings = AUTOSCALING,
    autoscaler_plugins: Sequence["PluginSource"] = (),
) -> tuple[Registration, ...]:
    """The controllers that every world has, in settle order.

    With ``events`` Events expire. ``gates`` are the feature gates that are on. ``namespace_delay``
    is how long a namespace that goes keeps its content. With ``heartbeats`` kubelets renew Leases.
    ``machines_at_once``: those of node groups take no time. ``autoscaling`` are flags of the pod
    autoscalers, ``autoscaler_plugins`` those that PluginAutoscalers can choose beside ours.
    ``furnished``: there is what every real cluster has.
    """
    return (
        controller_from(NodeSetReconciler),
        Registration(
            "node-provider", partial(node_provider, at_once=machines_at_once), NODE_GROUPS
        ),
        Registration("outage", outages, (OUTAGES,)),
        # What has gone makes room before anybody asks for it.
        Registration("resourcequota", resource_quota),
        Registration("deployment", deployment),
        Registration("replicaset", replicaset),
        Registration("replicationcontroller", replicationcontroller),
        Registration("daemonset", daemonset),
        Registration("statefulset", partial(statefulset, gates=gates)),
        Registration("job", job),
        Registration("cronjob", cronjob),
        Registration("ttl-after-finished", ttl_after_finished),
        Registration("disruption", disruption),
        Registration("traffic", traffic, (TRAFFICS,)),
        controller_from(MetricSeriesReconciler),
        Registration(
            "horizontalpodautoscaler",
            partial(horizontal_autoscaler, settings=autoscaling.horizontal),
        ),
        Registration(
            vertical.RECOMMENDER,
            partial(vertical.recommender, settings=autoscaling.vertical),
            offers=VERTICAL,
        ),
        Registration(vertical.UPDATER, partial(vertical.updater, settings=autoscaling.vertical)),
        Registration(KNATIVE, knative_autoscaler, offers=KNATIVE_OFFERS),
        Registration(KEDA, keda_operator, offers=KEDA_OFFERS),
        Registration(
            PLUGINS,
            partial(plugin_autoscalers, sources=autoscaler_plugins, settings=autoscaling),
            offers=PLUGIN_OFFERS,
        ),
        Registration("endpoints", endpoints),
        Registration("endpointslice", endpoint_slices),
        Registration("endpointslicemirroring", mirrored_endpoints),
        Registration("kubernetes-service", partial(api_server_service, acts=furnished)),
        Registration("root-ca-certificate-publisher", partial(root_certificates, acts=furnished)),
        Registration("clusterrole-aggregation", cluster_role_aggregation),
        Registration("namespace", partial(namespace, delay=namespace_delay)),
        Registration("storage-protection", storage_protection),
        Registration("ephemeral-volume", ephemeral_volume),
        Registration("persistentvolume-binder", persistent_volume_binder),
        Registration("resourceclaim", resource_claim),
        Registration("node-lifecycle", node_lifecycle),
        Registration("taint-eviction", taint_eviction),
        Registration("pod-garbage-collector", pod_garbage_collector),
        Registration("garbage-collector", garbage_collector),
        *((Registration("event-expiry", event_expiry),) if events else ()),
        *((Registration("node-heartbeats", node_heartbeats),) if heartbeats else ()),
        Registration(
            KUBELET,
            partial(kubelet, delays=delays, workloads=workloads, registers=furnished),
            component=Component.KUBELET,
        ),
    )
