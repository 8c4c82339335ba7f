"""A large import lets others write meanwhile."""

import pytest

from kubescene.actors import Actor
from kubescene.cluster import Cluster
from kubescene.errors import BadRequestError
from kubescene.registry import exports
from kubescene.types import JsonObject

USER = Actor("user")


def config_map(name: str) -> JsonObject:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def test_others_have_a_turn_after_every_hundred_objects(cluster: Cluster) -> None:
    document = {"items": [config_map(f"a-{each}") for each in range(500)]}
    slices = exports.importing(cluster.registry, USER, document)
    turns = 0
    for turns, _ in enumerate(slices, 1):
        cluster.create(config_map(f"other-{turns}"))
    assert turns >= 2 * 500 // exports.AT_ONCE
    assert len(cluster.list("configmaps")) == 500 + turns


def test_nothing_is_written_if_the_last_object_is_bad(cluster: Cluster) -> None:
    before = len(cluster.list("configmaps"))
    document = {"items": [*(config_map(f"a-{each}") for each in range(300)), {"kind": []}]}
    with pytest.raises(BadRequestError, match=r"items\[300\]"):
        list(exports.importing(cluster.registry, USER, document))
    assert len(cluster.list("configmaps")) == before


def definition(kind_of_n: str) -> JsonObject:
    names = {"plural": "xs", "singular": "x", "kind": "X", "listKind": "XList"}
    schema = {"type": "object", "properties": {"n": {"type": kind_of_n}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "xs.x.io"},
        "spec": {"group": "x.io", "names": names, "scope": "Cluster", "versions": [version]},
    }


def custom(name: str) -> JsonObject:
    return {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": name}, "n": "text"}


def test_what_is_bad_is_told_by_its_place_in_the_whole_list(cluster: Cluster) -> None:
    first, made = config_map("a"), definition("string")
    with pytest.raises(BadRequestError, match=r"items\[2\], X 'Not A Name'"):
        exports.import_objects(
            cluster.registry, USER, {"items": [first, made, custom("Not A Name")]}
        )
    with pytest.raises(BadRequestError, match=r"items\[1\], CustomResourceDefinition"):
        exports.import_objects(cluster.registry, USER, {"items": [first, {**made, "spec": {}}]})


def test_what_a_schema_said_before_counts_unless_it_is_another_now(cluster: Cluster) -> None:
    registry, document = cluster.registry, {"items": [config_map("a"), custom("x")]}
    exports.import_objects(registry, USER, {"items": [definition("integer")]})
    refusing = exports.examinations(registry, document)
    assert [*refusing] == [1]
    told = []
    for known in (None, refusing):
        with pytest.raises(BadRequestError, match=r"items\[1\], X 'x'") as error:
            exports.import_objects(registry, USER, document, known)
        told.append(str(error.value))
    assert told[0] == told[1]
    exports.import_objects(registry, USER, {"items": [definition("string")]})
    assert exports.import_objects(registry, USER, document, refusing) == 2
    allowing = exports.examinations(registry, document)
    exports.import_objects(registry, USER, {"items": [definition("integer")]})
    with pytest.raises(BadRequestError, match=r"items\[1\], X 'x'"):
        exports.import_objects(registry, USER, document, allowing)
