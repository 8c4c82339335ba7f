"""What every real cluster has and no scenario needs; a served world has it, too.

kube-apiserver keeps a Service ``default/kubernetes`` with the endpoints behind it, and
kube-controller-manager a ConfigMap ``kube-root-ca.crt`` in each namespace: charts, operators and
clients look for them. What is deleted comes back.
"""

from collections.abc import Iterable, Sequence

from kubescene.api.kinds import API_SERVER, API_SERVER_ADDRESS, NAMESPACE, ROOT_CERTIFICATE
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.reconcile import NOTHING, Create, ObjectKey, Plan, Write
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import AlreadyExistsError, ApiError, ForbiddenError, NotFoundError
from kubescene.types import JsonObject

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SERVICE = GroupVersionKind("", "v1", "Service")
ENDPOINTS = GroupVersionKind("", "v1", "Endpoints")
SLICE = GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice")
PLACE = ObjectKey(*API_SERVER)
PORT = 6443
HOST = "192.0.2.1"
"""An address for documents: nobody is there, and loopback may not be an endpoint."""
ABOUT_CERTIFICATE = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


class _Furnishing:
    """Makes what is missing. Without ``acts`` it does nothing: a scenario has the world."""

    name = ""
    kinds: Sequence[GroupVersionKind] = ()

    def __init__(self, *, acts: bool) -> None:
        self._acts = acts

    def key_of(self, change: Change) -> ObjectKey:
        raise NotImplementedError

    def wanted(self, key: ObjectKey) -> Sequence[JsonObject]:
        raise NotImplementedError

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if not self._acts:
            return ()
        if record.resource.resource == "namespaces":
            is_new = change.type is ChangeType.ADDED
            return (self.key_of(change),) if is_new else ()
        is_missed = change.type is ChangeType.DELETED and record.key == tuple(self.key_of(change))
        return (self.key_of(change),) if is_missed else ()

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        del now
        namespace = reader.find(ObjectRef(NAMESPACE, key.namespace))
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return NOTHING
        missing = [obj for obj in self.wanted(key) if reader.find(ObjectRef.to(obj)) is None]
        return Plan([Create(obj) for obj in missing])

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """Somebody else was faster, or the namespace is going."""
        del key, write, reader, now
        if isinstance(error, AlreadyExistsError | ForbiddenError | NotFoundError):
            return NOTHING
        raise error


class ApiServerService(_Furnishing):
    """The Service of the API server itself, and who is behind it."""

    name = "kubernetes-service"
    kinds: Sequence[GroupVersionKind] = (NAMESPACE, SERVICE, ENDPOINTS, SLICE)

    def key_of(self, change: Change) -> ObjectKey:
        del change
        return PLACE

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        is_place = change.record.name in (PLACE.namespace, PLACE.name)
        return super().observe(change) if is_place else ()

    def wanted(self, key: ObjectKey) -> Sequence[JsonObject]:
        return (service(), endpoints(), endpoint_slice())


class RootCertificates(_Furnishing):
    """The certificate by which pods know the API server: empty, since it speaks plain http."""

    name = "root-ca-certificate-publisher"
    kinds: Sequence[GroupVersionKind] = (NAMESPACE,)
    """One that was changed or deleted the registry restores (`kubescene.registry.accounts`)."""

    def key_of(self, change: Change) -> ObjectKey:
        return ObjectKey(change.record.name, ROOT_CERTIFICATE)

    def wanted(self, key: ObjectKey) -> Sequence[JsonObject]:
        annotations = {"kubernetes.io/description": ABOUT_CERTIFICATE}
        metadata = {
            "name": ROOT_CERTIFICATE,
            "namespace": key.namespace,
            "annotations": annotations,
        }
        data = {"ca.crt": ""}
        return ({**_head(CONFIG_MAP), "metadata": metadata, "data": data},)


def service() -> JsonObject:
    port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": PORT}
    spec = {
        "type": "ClusterIP",
        "clusterIP": API_SERVER_ADDRESS,
        "ipFamilyPolicy": "SingleStack",
        "sessionAffinity": "None",
        "ports": [port],
    }
    labels = {"component": "apiserver", "provider": "kubernetes"}
    return {**_head(SERVICE), "metadata": _metadata(labels), "spec": spec}


def endpoints() -> JsonObject:
    subset = {"addresses": [{"ip": HOST}], "ports": [_endpoint_port()]}
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    return {**_head(ENDPOINTS), "metadata": _metadata(labels), "subsets": [subset]}


def endpoint_slice() -> JsonObject:
    return {
        **_head(SLICE),
        "metadata": _metadata({"kubernetes.io/service-name": PLACE.name}),
        "addressType": "IPv4",
        "endpoints": [{"addresses": [HOST], "conditions": {"ready": True}}],
        "ports": [_endpoint_port()],
    }


def _endpoint_port() -> JsonObject:
    return {"name": "https", "port": PORT, "protocol": "TCP"}


def _head(kind: GroupVersionKind) -> JsonObject:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def _metadata(labels: JsonObject) -> JsonObject:
    return {"name": PLACE.name, "namespace": PLACE.namespace, "labels": labels}


def api_server_service(context: ControllerContext, *, acts: bool = False) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(ApiServerService(acts=acts), context)


def root_certificates(context: ControllerContext, *, acts: bool = False) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(RootCertificates(acts=acts), context)
