"""The admission plugins that influence scheduling and every-day use, in kube-apiserver's order."""

from kubescene.api.scheme import GroupResource
from kubescene.errors import ForbiddenError, NotFoundError
from kubescene.registry.admission import AdmissionPlugin, AdmissionRequest
from kubescene.registry.objects import with_part
from kubescene.types import JsonObject

NAMESPACES = GroupResource("", "namespaces")
PRIORITY_CLASSES = GroupResource("scheduling.k8s.io", "priorityclasses")

IMMORTAL_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle:
    """Nothing is created in a namespace that does not exist or is going away."""

    name = "NamespaceLifecycle"

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if request.verb == "delete" and request.resource_type.kind == "Namespace":
            self._check_mortal(request)
        if request.verb == "create" and request.resource_type.namespaced:
            self._check_alive(request)
        return request.obj

    def _check_mortal(self, request: AdmissionRequest) -> None:
        if request.name in IMMORTAL_NAMESPACES:
            raise ForbiddenError(
                f'namespaces "{request.name}" is forbidden: this namespace may not be deleted',
                name=request.name,
                kind="namespaces",
            )

    def _check_alive(self, request: AdmissionRequest) -> None:
        record = request.store.get(NAMESPACES, "", request.namespace)
        if record is None:
            raise NotFoundError(
                f'namespaces "{request.namespace}" not found',
                name=request.namespace,
                kind="namespaces",
            )
        if record.phase == "Terminating":
            resource = request.resource_type.named_resource
            raise ForbiddenError(
                f'{resource} "{request.name}" is forbidden: unable to create new content in '
                f"namespace {request.namespace} because it is being terminated",
                name=request.name,
                group=resource.group,
                kind=resource.resource,
            )


class Priority:
    """Resolves a pod's priority class to its number and preemption policy."""

    name = "Priority"

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if not request.is_create("Pod"):
            return request.obj
        spec = request.obj["spec"]
        resolved = self._resolve(request, spec.get("priorityClassName", ""))
        given = spec.get("priority")
        if given is not None and given != resolved["value"]:
            raise ForbiddenError(
                f'pods "{request.name}" is forbidden: the integer value of priority ({given}) must '
                "not be provided in pod spec; priority admission controller computed "
                f"{resolved['value']} from the given PriorityClass name",
                name=request.name,
                kind="pods",
            )
        changes = {"priority": resolved["value"]}
        if resolved["name"]:
            changes["priorityClassName"] = resolved["name"]
        policy = resolved["preemptionPolicy"]
        if spec.get("preemptionPolicy", policy) != policy:
            raise ForbiddenError(
                f'pods "{request.name}" is forbidden: the string value of PreemptionPolicy '
                f"({spec['preemptionPolicy']}) must not be provided in pod spec; priority admission "
                f"controller computed {policy} from the given PriorityClass name",
                name=request.name,
                kind="pods",
            )
        changes["preemptionPolicy"] = policy
        return with_part(request.obj, "spec", {**spec, **changes})

    def _resolve(self, request: AdmissionRequest, name: str) -> JsonObject:
        chosen = self._named(request, name) if name else self._global_default(request)
        if chosen is None:
            return {"name": "", "value": 0, "preemptionPolicy": "PreemptLowerPriority"}
        return {
            "name": chosen["metadata"]["name"],
            "value": chosen["value"],
            "preemptionPolicy": chosen.get("preemptionPolicy", "PreemptLowerPriority"),
        }

    def _named(self, request: AdmissionRequest, name: str) -> JsonObject:
        record = request.store.get(PRIORITY_CLASSES, "", name)
        if record is None:
            raise ForbiddenError(
                f'pods "{request.name}" is forbidden: no PriorityClass with name {name} was found',
                name=request.name,
                kind="pods",
            )
        return request.store.decoded(record)

    def _global_default(self, request: AdmissionRequest) -> JsonObject | None:
        classes = [request.store.decoded(r) for r in request.store.list(PRIORITY_CLASSES)]
        defaults = [c for c in classes if c.get("globalDefault")]
        return min(defaults, key=lambda c: int(c["value"]), default=None)


class DefaultTolerationSeconds:
    """Pods stay five minutes on a node that is not ready or unreachable, unless they say otherwise."""

    name = "DefaultTolerationSeconds"
    KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    SECONDS = 300

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if not request.is_create("Pod"):
            return request.obj
        spec = request.obj["spec"]
        tolerations = spec.get("tolerations") or []
        missing = [key for key in self.KEYS if not any(_covers(t, key) for t in tolerations)]
        if not missing:
            return request.obj
        added = [
            {
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": self.SECONDS,
            }
            for key in missing
        ]
        return with_part(request.obj, "spec", {**spec, "tolerations": [*tolerations, *added]})


def _covers(toleration: JsonObject, key: str) -> bool:
    right_key = toleration.get("key", "") in ("", key)
    return right_key and toleration.get("effect", "") in ("", "NoExecute")


def default_chain() -> list[AdmissionPlugin]:
    """What a kube-apiserver with default settings runs, as far as Kubescene models it."""
    return [NamespaceLifecycle(), Priority(), DefaultTolerationSeconds()]
