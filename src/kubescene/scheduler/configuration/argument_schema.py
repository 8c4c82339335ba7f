"""The arguments of the built-in plugins, as published: ``NAMEArgs`` for the plugin ``NAME``."""

from collections.abc import Mapping

from kubescene.scheduler.configuration.schema import TYPE_META, Fields, ListOf, MapOf, Scalar, Shape

_TEXTS = ListOf(Scalar.TEXT)

_REQUIREMENTS = ListOf(
    Fields({"key": Scalar.TEXT, "operator": Scalar.TEXT, "values": _TEXTS}),
)
_NODE_SELECTOR_TERM = Fields({"matchExpressions": _REQUIREMENTS, "matchFields": _REQUIREMENTS})
_NODE_AFFINITY = Fields(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": Fields(
            {"nodeSelectorTerms": ListOf(_NODE_SELECTOR_TERM)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(
            Fields({"weight": Scalar.INT32, "preference": _NODE_SELECTOR_TERM})
        ),
    }
)
_SPREAD_CONSTRAINT = Fields(
    {
        "maxSkew": Scalar.INT32,
        "topologyKey": Scalar.TEXT,
        "whenUnsatisfiable": Scalar.TEXT,
        "labelSelector": Fields(
            {"matchLabels": MapOf(Scalar.TEXT), "matchExpressions": _REQUIREMENTS}
        ),
        "minDomains": Scalar.INT32,
        "nodeAffinityPolicy": Scalar.TEXT,
        "nodeTaintsPolicy": Scalar.TEXT,
        "matchLabelKeys": _TEXTS,
    }
)
_SHAPE = ListOf(Fields({"utilization": Scalar.INT32, "score": Scalar.INT32}))
_RESOURCES = ListOf(Fields({"name": Scalar.TEXT, "weight": Scalar.INT64}))


def _args(members: Mapping[str, Shape]) -> Fields:
    return Fields({**TYPE_META, **members})


ARGUMENTS: Mapping[str, Fields] = {
    "DefaultPreemption": _args(
        {
            "minCandidateNodesPercentage": Scalar.INT32,
            "minCandidateNodesAbsolute": Scalar.INT32,
        }
    ),
    "DynamicResources": _args(
        {"filterTimeout": Scalar.DURATION, "bindingTimeout": Scalar.DURATION}
    ),
    "InterPodAffinity": _args(
        {
            "hardPodAffinityWeight": Scalar.INT32,
            "ignorePreferredTermsOfExistingPods": Scalar.BOOLEAN,
        }
    ),
    "NodeAffinity": _args({"addedAffinity": _NODE_AFFINITY}),
    "NodeResourcesBalancedAllocation": _args({"resources": _RESOURCES}),
    "NodeResourcesFit": _args(
        {
            "ignoredResources": _TEXTS,
            "ignoredResourceGroups": _TEXTS,
            "scoringStrategy": Fields(
                {
                    "type": Scalar.TEXT,
                    "resources": _RESOURCES,
                    "requestedToCapacityRatio": Fields({"shape": _SHAPE}),
                }
            ),
        }
    ),
    "PodTopologySpread": _args(
        {"defaultConstraints": ListOf(_SPREAD_CONSTRAINT), "defaultingType": Scalar.TEXT}
    ),
    "VolumeBinding": _args({"bindTimeoutSeconds": Scalar.INT64, "shape": _SHAPE}),
}
"""Per built-in plugin that takes arguments."""
