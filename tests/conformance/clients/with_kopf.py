"""A kopf operator for gardens: tells what its handlers are called for, and writes a status.

Started with the path of a kubeconfig; ends when it is terminated.
"""

import os
import sys
from typing import Any

import kopf


@kopf.on.startup()  # type: ignore[untyped-decorator, unused-ignore]
def configure(settings: Any, **_: Any) -> None:
    settings.posting.enabled = False


@kopf.on.login()  # type: ignore[untyped-decorator, unused-ignore]
def log_in(**options: Any) -> Any:
    return kopf.login_with_kubeconfig(**options)


@kopf.on.create("gardens.example.com")  # type: ignore[untyped-decorator, unused-ignore]
def create(spec: Any, patch: Any, **_: Any) -> None:
    patch.status["planted"] = spec["colour"]
    print("created", spec["colour"], flush=True)


@kopf.on.update("gardens.example.com")  # type: ignore[untyped-decorator, unused-ignore]
def change(spec: Any, **_: Any) -> None:
    print("changed", spec["colour"], flush=True)


@kopf.on.delete("gardens.example.com")  # type: ignore[untyped-decorator, unused-ignore]
def remove(name: str, **_: Any) -> None:
    print("removed", name, flush=True)


if __name__ == "__main__":
    os.environ["KUBECONFIG"] = sys.argv[1]
    kopf.run(standalone=True, namespaces=["default"])
