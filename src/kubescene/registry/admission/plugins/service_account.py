"""ServiceAccount: every pod runs as an account of its namespace, ``default`` unless it says so.

Tokens are not mounted: no container reads them here, and a volume more in every pod would only
make pods larger. Everything else is as in kube-apiserver, refusals included.
"""

from kubescene.api.scheme import GroupResource
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.objects import with_part
from kubescene.types import JsonObject

SERVICE_ACCOUNTS = GroupResource("", "serviceaccounts")
DEFAULT_ACCOUNT = "default"
MIRROR_POD = "kubernetes.io/config.mirror"


class ServiceAccount:
    name = "ServiceAccount"
    reads = (SERVICE_ACCOUNTS,)
    is_quiet = True
    kinds = ("Pod",)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if not request.is_create("Pod"):
            return request.obj
        if is_mirror(request.obj):
            check_mirror(request)
            return request.obj
        spec = request.obj["spec"]
        name = spec.get("serviceAccountName") or DEFAULT_ACCOUNT
        account = find_account(request, name)
        changes: JsonObject = {"serviceAccountName": name, "serviceAccount": name}
        if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
            changes["imagePullSecrets"] = account["imagePullSecrets"]
        return with_part(request.obj, "spec", {**spec, **changes})


def is_mirror(pod: JsonObject) -> bool:
    """Whether the pod is a kubelet's image of a static pod."""
    return MIRROR_POD in (pod["metadata"].get("annotations") or ())


def check_mirror(request: AdmissionRequest) -> None:
    spec = request.obj["spec"]
    if spec.get("serviceAccountName"):
        raise request.forbidden("a mirror pod may not reference service accounts")
    if any("secret" in volume for volume in spec.get("volumes") or ()):
        raise request.forbidden("a mirror pod may not reference secrets")


def find_account(request: AdmissionRequest, name: str) -> JsonObject:
    """The account a pod runs as; 403 if it does not exist."""
    record = request.store.get(SERVICE_ACCOUNTS, request.namespace, name)
    if record is None and name == DEFAULT_ACCOUNT:
        return {}  # kube-apiserver waits until a controller has made it; here it counts as made
    if record is None:
        raise request.forbidden(
            f"error looking up service account {request.namespace}/{name}: "
            f'serviceaccount "{name}" not found'
        )
    return request.store.decoded(record)
