"""What can be said of a scenario's objects without playing it.

Kinds, fields and values are checked as the API will check them; what depends on the world at that
moment (a namespace, a priority class, an object to patch) only shows when it is played.
"""

from kubescene.actors import ENGINE
from kubescene.cluster import Cluster
from kubescene.errors import ApiError, ScenarioError
from kubescene.registry import exports
from kubescene.scenario.operations import Template
from kubescene.scenario.options import write_options
from kubescene.scenario.spec import Operation, OperationKind, ScenarioSpec


def check_objects(spec: ScenarioSpec) -> None:
    """Raise `ScenarioError` for the first operation whose object the API would refuse."""
    cluster = Cluster()
    for operation in spec.operations:
        if operation.kind is OperationKind.CREATE:
            _check_object(operation, cluster)


def _check_object(operation: Operation, cluster: Cluster) -> None:
    body, registry = operation.body, cluster.registry
    counted = "count" in body
    obj = Template(body["object"]).instance(0) if counted else body["object"]
    options = write_options(body.get("createOptions"))
    metadata = obj.get("metadata")
    if isinstance(metadata, dict) and metadata.get("generateName") and not metadata.get("name"):
        obj = {**obj, "metadata": {**metadata, "name": f"{metadata['generateName']}x"}}
    try:
        if options.strict:
            registry.reject_unknown(obj)
        resource_type, complete = exports.restorable(registry, obj)
        if resource_type.kind == "CustomResourceDefinition":
            exports.restore(registry, ENGINE, resource_type, complete)
    except ApiError as error:
        raise ScenarioError(error.message, where=operation.where) from error
    if counted and body["count"] > 1 and Template(body["object"]).instance(1) == obj:
        raise ScenarioError(
            "count makes several objects of the same name: put $(INDEX) into metadata.name",
            where=operation.where,
        )
