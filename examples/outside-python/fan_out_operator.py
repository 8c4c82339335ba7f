"""An operator on kopf, whole: for a ConfigMap labelled ``fan-out: N`` it makes N copies.

Usage: fan_out_operator.py KUBECONFIG
"""

import os
import sys
from typing import Any

import kopf
import kubernetes


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False  # no Events about what it does


@kopf.on.login()
def log_in(**options: Any) -> Any:
    return kopf.login_with_kubeconfig(**options)


@kopf.on.create("configmaps", labels={"fan-out": kopf.PRESENT})
@kopf.on.resume("configmaps", labels={"fan-out": kopf.PRESENT})
def fan_out(body: kopf.Body, name: str, namespace: str, **_: Any) -> None:
    api = kubernetes.client.CoreV1Api()
    there = api.list_namespaced_config_map(namespace, label_selector=f"copy-of={name}").items
    names = {each.metadata.name for each in there}
    for number in range(int(body["metadata"]["labels"]["fan-out"])):
        if f"{name}-{number}" not in names:
            metadata = {"name": f"{name}-{number}", "labels": {"copy-of": name}}
            copy = {"metadata": metadata, "data": dict(body.get("data", {}))}
            api.create_namespaced_config_map(namespace, copy)


if __name__ == "__main__":
    os.environ["KUBECONFIG"] = sys.argv[1]
    kubernetes.config.load_kube_config(sys.argv[1])
    kopf.run(standalone=True, namespaces=["default"])
