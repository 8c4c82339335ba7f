"""Writing scenarios in Python.

The builder produces the same object that a YAML file would hold, so what is built can be saved,
diffed, reviewed and played by anybody::

    scenario = (
        ScenarioBuilder("two-pods")
        .step(1).create(node, count=3)
        .step(2).create(pod_a, pod_b)
        .step(3).delete("v1", "Node", "node-0").done()
    )
    scenario.save("scenario.yaml")
"""

import json
from pathlib import Path
from typing import Any, Self

from kubescene.api.kinds import SCENARIO
from kubescene.client.verbs import AnyObject, plain
from kubescene.errors import ScenarioError
from kubescene.types import JsonObject


class ScenarioBuilder:
    """Collects operations step by step. Every method returns the builder."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._step = 1
        self._operations: list[JsonObject] = []
        self._controllers: JsonObject = {}
        self._simulation: JsonObject = {}
        self._expectations: list[JsonObject] = []

    def step(self, major: int) -> Self:
        """The major step that later operations belong to."""
        if major < 1:
            raise ScenarioError(f"steps begin at 1, not {major}")
        self._step = major
        return self

    def next_step(self) -> Self:
        return self.step(self._step + 1)

    def create(
        self,
        *objects: AnyObject,
        count: int | None = None,
        arrivals: JsonObject | None = None,
        subresource: str = "",
        id: str = "",
    ) -> Self:
        """Create objects.

        With ``count``, that many of each, ``$(INDEX)`` replaced in the object. With ``arrivals``
        they come while time passes: ``{"poisson": {"every": "30s"}, "for": "1h"}``. With
        ``subresource``, they are written through that part of existing objects.
        """
        for obj in objects:
            body: JsonObject = {"object": plain(obj)}
            if count is not None:
                body["count"] = count
            if arrivals is not None:
                body["arrivals"] = arrivals
            if subresource:
                body["subresource"] = subresource
            self._add("createOperation", body, id)
        return self

    def patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        patch: Any,
        *,
        namespace: str = "",
        patch_type: str = "",
        subresource: str = "",
        id: str = "",
    ) -> Self:
        """Patch an object, or its ``status`` or ``scale``; ``patch`` is data or text."""
        body = target(api_version, kind, name, namespace)
        body["patch"] = patch if isinstance(patch, str) else json.dumps(patch)
        if patch_type:
            body["patchType"] = patch_type
        if subresource:
            body["subresource"] = subresource
        return self._add("patchOperation", body, id)

    def delete(
        self, api_version: str, kind: str, name: str, *, namespace: str = "", id: str = ""
    ) -> Self:
        return self._add("deleteOperation", target(api_version, kind, name, namespace), id)

    def patch_all(
        self, api_version: str, kind: str, labels: dict[str, str], patch: Any, **more: Any
    ) -> Self:
        """Patch all objects with these labels; ``more`` as in `delete_all`, and patch options."""
        body = chosen(api_version, kind, labels)
        body["patch"] = patch if isinstance(patch, str) else json.dumps(patch)
        id = more.pop("id", "")
        return self._add("patchOperation", {**body, **more}, id)

    def delete_all(
        self, api_version: str, kind: str, labels: dict[str, str], *, id: str = "", **more: Any
    ) -> Self:
        """Delete all objects with these labels; ``more``: ``namespace``, ``limit``, ``share``."""
        body = {**chosen(api_version, kind, labels), **more}
        return self._add("deleteOperation", body, id)

    def evict(
        self, name: str = "", *, namespace: str = "default", id: str = "", **more: Any
    ) -> Self:
        """Evict a pod, or without a name those of a ``selector``, as far as budgets allow."""
        metadata = {"objectMeta": {"name": name, "namespace": namespace}} if name else {}
        return self._add("evictOperation", {**metadata, **more}, id)

    def drain(self, *names: str, id: str = "", **flags: Any) -> Self:
        """Drain nodes, or without names those of a ``selector``; flags by their field names."""
        nodes = {"names": [*names]} if names else {}
        return self._add("drainOperation", {**nodes, **flags}, id)

    def replay(self, file: str, *, form: str = "", id: str = "") -> Self:
        """Play what others than controllers did in a history, while time passes."""
        return self._add(
            "replayOperation", {"file": file, **({"format": form} if form else {})}, id
        )

    def advance(self, duration: str, *, id: str = "") -> Self:
        """Let virtual time pass after the step has come to rest: ``advance("5m")``."""
        return self._add("advanceOperation", {"duration": duration}, id)

    def done(self, *, id: str = "") -> Self:
        """The scenario succeeds when this step is complete."""
        return self._add("doneOperation", {}, id)

    def simulate(self, *names: str) -> Self:
        """The controllers under test, in order; ``kube-scheduler`` unless named otherwise."""
        self._controllers["simulationControllers"] = {"enabled": [{"name": n} for n in names]}
        return self

    def disable(self, *names: str) -> Self:
        """Controllers that must not run; ``"*"`` turns all pre-simulation controllers off."""
        self._controllers["presimulationControllers"] = {"disabled": [{"name": n} for n in names]}
        return self

    def outside(self, name: str, **settings: Any) -> Self:
        """A controller in another process, by the field names of ``controllers.outside``.

        It reacts before the simulation unless `simulate` names it.
        """
        self._controllers.setdefault("outside", []).append({"name": name, **settings})
        return self

    def settings(self, **simulation: Any) -> Self:
        """``spec.simulation``, by its field names: ``seed``, ``startTime``, ``explain`` ..."""
        self._simulation |= simulation
        return self

    def expect(self, name: str, expression: str, message: str = "") -> Self:
        """What must hold of the result, in CEL; ``message`` is told where it does not."""
        told = {"message": message} if message else {}
        self._expectations.append({"name": name, "expression": expression, **told})
        return self

    def build(self) -> JsonObject:
        """The Scenario object."""
        spec: JsonObject = {"operations": list(self._operations)}
        if self._controllers:
            if "simulationControllers" not in self._controllers:
                self.simulate("kube-scheduler")
            spec["controllers"] = dict(self._controllers)
        if self._simulation:
            spec["simulation"] = dict(self._simulation)
        if self._expectations:
            spec["expectations"] = list(self._expectations)
        return {
            "apiVersion": SCENARIO.api_version,
            "kind": SCENARIO.kind,
            "metadata": {"name": self._name},
            "spec": spec,
        }

    def to_yaml(self) -> str:
        # YAML is imported only by those who write it.
        from kubescene.api.text.yaml_text import dump_yaml

        return dump_yaml(self.build())

    def save(self, path: str | Path) -> Path:
        """Write the scenario file and return its path."""
        file = Path(path)
        file.write_text(self.to_yaml(), encoding="utf-8")
        return file

    def _add(self, field: str, body: JsonObject, operation_id: str) -> Self:
        operation: JsonObject = {"id": operation_id} if operation_id else {}
        self._operations.append({**operation, "step": self._step, field: body})
        return self


def chosen(api_version: str, kind: str, labels: dict[str, str]) -> JsonObject:
    types = {"apiVersion": api_version, "kind": kind}
    return {"typeMeta": types, "selector": {"matchLabels": labels}}


def target(api_version: str, kind: str, name: str, namespace: str) -> JsonObject:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"typeMeta": {"apiVersion": api_version, "kind": kind}, "objectMeta": metadata}
