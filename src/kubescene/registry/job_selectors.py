"""The selector of a Job, which the server makes unless the author insists on his own."""

from kubescene.types import JsonObject

NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
SELECTED = "batch.kubernetes.io/controller-uid"


def with_selector(job: JsonObject) -> JsonObject:
    """A new Job that selects the pods which carry its uid, and a template that labels them so."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return job
    generated = dict.fromkeys(NAME_LABELS, metadata.get("name", ""))
    generated |= dict.fromkeys(UID_LABELS, metadata["uid"])
    template = spec.get("template") or {}
    inner = template.get("metadata") or {}
    labels = {**generated, **(inner.get("labels") or {})}
    selector = spec.get("selector") or {}
    matched = {SELECTED: metadata["uid"], **(selector.get("matchLabels") or {})}
    changes = {
        "selector": {**selector, "matchLabels": matched},
        "template": {**template, "metadata": {**inner, "labels": labels}},
    }
    return {**job, "spec": {**spec, **changes}}
