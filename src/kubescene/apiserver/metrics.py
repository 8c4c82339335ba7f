"""``/metrics``: what the server holds, as Prometheus reads it."""

from collections.abc import Iterator

from kubescene.apiserver.about import KUBERNETES_VERSION
from kubescene.apiserver.responses import Response
from kubescene.store import Store
from kubescene.version import __version__

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics(store: Store) -> Response:
    """Objects per resource, the newest revision, and the version."""
    return Response("".join(f"{line}\n" for line in _lines(store)).encode(), 200, MEDIA_TYPE)


def _lines(store: Store) -> Iterator[str]:
    yield "# HELP apiserver_storage_objects Number of stored objects by resource."
    yield "# TYPE apiserver_storage_objects gauge"
    for resource in sorted(store.resources(), key=str):
        named = f'{{group="{resource.group}",resource="{resource.resource}"}}'
        yield f"apiserver_storage_objects{named} {store.count(resource)}"
    yield "# HELP kubescene_storage_revision The revision of the newest write."
    yield "# TYPE kubescene_storage_revision counter"
    yield f"kubescene_storage_revision {store.revision}"
    yield "# HELP kubescene_build_info The version of Kubescene, and of Kubernetes as it shows it."
    yield "# TYPE kubescene_build_info gauge"
    versions = f'version="{__version__}",kubernetes="{KUBERNETES_VERSION}"'
    yield f"kubescene_build_info{{{versions}}} 1"
