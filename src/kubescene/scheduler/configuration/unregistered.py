"""What kube-scheduler says of a kind or version that it does not have."""

from kubescene.api.validation.field_errors import quote

_SCHEME = "pkg/scheduler/apis/config/scheme/scheme.go:29"


def not_registered(kind: str, api_version: str) -> str:
    return (
        f"no kind {quote(kind)} is registered for version {quote(api_version)} "
        f'in scheme "{_SCHEME}"'
    )
