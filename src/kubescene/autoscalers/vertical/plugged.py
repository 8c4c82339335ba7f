"""What a PluginAutoscaler recommends, as the VerticalPodAutoscaler that would say the same.

So its pods are sized by the rules of the real one: requests at the target, limits in proportion,
within the LimitRanges of the namespace.
"""

from msgspec.structs import replace

from kubescene.autoscalers.vertical.limits import containers_of
from kubescene.autoscalers.vertical.objects import (
    API_VERSIONS,
    KIND,
    VerticalPodAutoscaler,
    decode_vpa,
)
from kubescene.types import JsonObject

PLUGIN = "PluginAutoscaler"


def sized_container(obj: JsonObject, pod: JsonObject) -> str:
    """Which container of a pod has the size that is recommended; ValueError if that is open."""
    names = [each["name"] for each in containers_of(pod)]
    wanted = obj["spec"].get("container") or ""
    shown = f"pod {pod['metadata'].get('name', '')!r} has the containers {', '.join(names)}"
    if wanted:
        if wanted not in names:
            raise ValueError(f"spec.container: {shown}, and no {wanted!r}")
        return str(wanted)
    if len(names) != 1:
        raise ValueError(f"spec.container: {shown}: say which one is sized")
    return str(names[0])


def as_vertical(obj: JsonObject, pod: JsonObject) -> VerticalPodAutoscaler | None:
    """For one pod; None if nothing is recommended. ValueError: see `sized_container`."""
    recommended = (obj.get("status") or {}).get("recommendation")
    if not recommended:
        return None
    metadata = obj["metadata"]
    names = ("name", "namespace", "creationTimestamp")
    container = {"containerName": sized_container(obj, pod), **recommended}
    vpa = decode_vpa(
        {
            "apiVersion": API_VERSIONS[0],
            "kind": KIND,
            "metadata": {name: metadata[name] for name in names if name in metadata},
            "spec": {"targetRef": obj["spec"]["scaleTargetRef"]},
            "status": {"recommendation": {"containerRecommendations": [container]}},
        }
    )
    return replace(vpa, kind=PLUGIN)
