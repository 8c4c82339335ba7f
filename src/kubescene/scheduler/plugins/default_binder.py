"""DefaultBinder: tells the API server where the pod runs (E-4); it writes no annotations (E-10)."""

from collections.abc import Mapping
from typing import Any

from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import Client, ObjectRef
from kubescene.errors import ApiError
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import (
    BindPlugin,
    Handle,
    Plugin,
)
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.pods import PodInfo

POD = GroupVersionKind("", "v1", "Pod")


class DefaultBinder(BindPlugin):
    name = "DefaultBinder"

    def __init__(self, client: Client) -> None:
        self._client = client

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        ref, annotations = ObjectRef(POD, pod.name, pod.namespace), state.annotations
        try:
            if annotations is None:
                self._client.bind(ref, node, uid=pod.uid)
            else:
                self._client.bind(ref, node, uid=pod.uid, annotations=annotations)
                state.annotations = None
        except ApiError as error:
            return Status.error(error.message)
        return SUCCESS


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments
    return DefaultBinder(handle.client)
