"""A kopf operator with an admission server: kopf serves the webhooks and configures them itself.

Started with a kubeconfig and a folder that holds ``crt`` and ``key``; ends when it is terminated.
"""

import os
import sys
from typing import Any

import kopf


@kopf.on.startup()  # type: ignore[untyped-decorator, unused-ignore]
def configure(settings: Any, **_: Any) -> None:
    certificate, key = (os.path.join(sys.argv[2], name) for name in ("crt", "key"))
    settings.posting.enabled = False
    settings.admission.managed = "auto.kopf.dev"
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1", host="127.0.0.1", certfile=certificate, pkeyfile=key, cafile=certificate
    )


@kopf.on.login()  # type: ignore[untyped-decorator, unused-ignore]
def log_in(**options: Any) -> Any:
    return kopf.login_with_kubeconfig(**options)


@kopf.on.validate("configmaps")  # type: ignore[untyped-decorator, unused-ignore]
def check(body: Any, warnings: list[str], **_: Any) -> None:
    warnings.append("looked at")
    if (body.get("data") or {}).get("bad"):
        raise kopf.AdmissionError("it is bad", code=451)


@kopf.on.mutate("configmaps")  # type: ignore[untyped-decorator, unused-ignore]
def mutate(patch: Any, **_: Any) -> None:
    patch.setdefault("data", {})["kopf"] = "was here"


if __name__ == "__main__":
    os.environ["KUBECONFIG"] = sys.argv[1]
    kopf.run(standalone=True, namespaces=["default"])
