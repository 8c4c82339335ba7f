"""NamespaceLifecycle: nothing is created in a namespace that does not exist or is going away."""

from kubescene.api.scheme import GroupResource
from kubescene.errors import ForbiddenError, NotFoundError, StatusCause
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.types import JsonObject

NAMESPACES = GroupResource("", "namespaces")
IMMORTAL_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle:
    name = "NamespaceLifecycle"
    reads = (NAMESPACES,)
    is_quiet = True

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if request.verb == "delete" and request.is_for("Namespace"):
            check_mortal(request)
        if request.verb == "create" and request.resource_type.namespaced:
            check_alive(request)
        return request.obj


def check_mortal(request: AdmissionRequest) -> None:
    if request.name in IMMORTAL_NAMESPACES:
        raise request.forbidden("this namespace may not be deleted")


def check_alive(request: AdmissionRequest) -> None:
    namespace = request.namespace
    record = request.store.get(NAMESPACES, "", namespace)
    if record is None:
        raise NotFoundError(
            f'namespaces "{namespace}" not found', name=namespace, kind="namespaces"
        )
    if record.phase == "Terminating":
        refusal = request.forbidden(
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        raise ForbiddenError(
            refusal.message,
            name=refusal.name,
            group=refusal.group,
            kind=refusal.kind,
            causes=[
                StatusCause(
                    "NamespaceTerminating",
                    f"namespace {namespace} is being terminated",
                    "metadata.namespace",
                )
            ],
        )
