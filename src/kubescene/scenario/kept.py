"""What was there before a scenario, and stays, since a served world keeps what its users ask it to.

No write of the run tells of it, so the log begins with it: results count nodes and pods.
"""

from collections.abc import Iterator
from typing import Any

from kubescene.api.kinds import NODE, POD
from kubescene.api.text.encoding import encode
from kubescene.client import Reader
from kubescene.timeline.object_facts import state_of

KINDS = (NODE, POD)


def kept_objects(reader: Reader) -> Iterator[dict[str, Any]]:
    """The fields of an `ObjectKept` for each node and pod, nodes first."""
    for gvk in KINDS:
        for each in reader.list(gvk):
            metadata = {**each["metadata"]}
            metadata.pop("resourceVersion", None)
            yield {
                "gvk": gvk,
                "namespace": metadata.get("namespace", ""),
                "name": metadata["name"],
                "uid": metadata.get("uid", ""),
                "subresource": "",
                "origin": None,
                "record": state_of(encode({**each, "metadata": metadata}), gvk),
            }
