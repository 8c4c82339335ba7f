"""Builds the default Roles of ``kubescene.apiserver.access`` from what kube-apiserver has.

    kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o json > roles.json
    python -m tools.rbac.build roles.json

asked of a kube-apiserver v1.36 that has just begun, with nobody beside it: a controller would fill
in the rules that are aggregated. The same answers give the same bytes.
"""

import argparse
import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "src/kubescene/apiserver/access/data/default_roles.json"
KINDS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
METADATA = ("name", "namespace", "labels", "annotations")
MEMBERS = ("aggregationRule", "rules", "subjects", "roleRef")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the default Roles of kubescene.apiserver.")
    parser.add_argument("answers", type=Path, help="the list that kubectl printed")
    parser.add_argument("--out", type=Path, default=DATA, help="file to write to")
    arguments = parser.parse_args()
    found = json.loads(arguments.answers.read_text())["items"]
    rows = [json.dumps(each, separators=(",", ":")) for each in shortened(found)]
    arguments.out.write_text("[\n" + ",\n".join(rows) + "\n]\n")


def shortened(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What all clusters have in common, in the order in which it is made."""
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": each["kind"],
            "metadata": {
                name: each["metadata"][name] for name in METADATA if name in each["metadata"]
            },
            **{name: each[name] for name in MEMBERS if each.get(name) is not None},
        }
        for each in sorted(objects, key=_place)
    ]


def _place(obj: dict[str, Any]) -> tuple[int, str, str]:
    metadata = obj["metadata"]
    return KINDS.index(obj["kind"]), metadata.get("namespace", ""), metadata["name"]


if __name__ == "__main__":
    main()
