"""An operator on kopf, for the tests with programs from outside: fans ConfigMaps out.

For a ConfigMap labelled ``fan-out=N`` it keeps N copies.
Usage: kopf_operator.py KUBECONFIG [--park]

With ``--park`` every event is one loop of the controller ``fan-out``, which ends by parking.
Without, it is an operator as most are: handlers of creation and change, and kopf's own notes on the
object.
"""

import os
import sys
from pathlib import Path
from typing import Any

import kopf
import kubernetes
import yaml

sys.path.insert(0, str(Path(__file__).parents[3] / "clients" / "python"))
from kubescene_scenario import check_scenario_step_phase, in_steps

NAME = "fan-out"
TOO_MANY = 1000


@kopf.on.startup()  # type: ignore[untyped-decorator, unused-ignore]
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False


@kopf.on.login()  # type: ignore[untyped-decorator, unused-ignore]
def log_in(**options: Any) -> Any:
    return kopf.login_with_kubeconfig(**options)


def fan_out(body: kopf.Body, **_: Any) -> None:
    """Write the copies in the order of their numbers, then delete those that are too many."""
    wanted = _wanted(body)
    if wanted is None:
        return
    api: Any = kubernetes.client.CoreV1Api()
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    listed = api.list_namespaced_config_map(namespace, label_selector=f"copy-of={name}")
    there = {entry.metadata.name: entry.data or {} for entry in listed.items}
    for number in range(wanted):
        copy = _copy(body, f"{name}-{number}")
        if copy["metadata"]["name"] not in there:
            api.create_namespaced_config_map(namespace, copy)
        elif there[copy["metadata"]["name"]] != copy["data"]:
            api.patch_namespaced_config_map(copy["metadata"]["name"], namespace, copy)
    for number in range(wanted, TOO_MANY):
        if f"{name}-{number}" in there:
            api.delete_namespaced_config_map(f"{name}-{number}", namespace)


def fan_out_event(event: kopf.RawEvent, body: kopf.Body, **others: Any) -> None:
    """The same, for whatever happened to the object."""
    if event["type"] != "DELETED":
        fan_out(body, **others)


def _wanted(body: kopf.Body) -> int | None:
    label = body["metadata"].get("labels", {}).get(NAME, "")
    return int(label) if label.isdecimal() and int(label) <= TOO_MANY else None


def _copy(source: kopf.Body, name: str) -> dict[str, Any]:
    owner = {key: source["metadata"][key] for key in ("name", "uid")}
    return {
        "metadata": {
            "name": name,
            "labels": {"copy-of": owner["name"]},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "controller": True, **owner}
            ],
        },
        "data": dict(source.get("data", {})),
    }


def register(kubeconfig: str, park: bool) -> None:
    labels = {NAME: kopf.PRESENT}
    if park:
        with open(kubeconfig) as file:
            server = yaml.safe_load(file)["clusters"][0]["cluster"]["server"]
        check_scenario_step_phase(NAME, server)  # so that the first loop, too, is known to park
        kopf.on.event("configmaps", labels=labels)(in_steps(NAME, server)(fan_out_event))
        return
    for handler in (kopf.on.create, kopf.on.update, kopf.on.resume):
        handler("configmaps", labels=labels)(fan_out)


if __name__ == "__main__":
    os.environ["KUBECONFIG"] = sys.argv[1]
    kubernetes.config.load_kube_config(sys.argv[1])  # type: ignore[no-untyped-call, unused-ignore]
    register(sys.argv[1], park="--park" in sys.argv[2:])
    kopf.run(standalone=True, namespaces=["default"])
