"""Definitions and objects of their kinds: what is asked of the real kube-apiserver, and of ours.

A case is a definition and what is done with it, one step after the other. `refused` are definitions
that are looked at only (dry run); in `played` objects are written as well.
"""

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

JSON = dict[str, Any]
TEXT, WHOLE, FREE = {"type": "string"}, {"type": "integer"}, "x-kubernetes-preserve-unknown-fields"
RULES, KEYS = "x-kubernetes-validations", "x-kubernetes-list-map-keys"
LIST, MAP = "x-kubernetes-list-type", "x-kubernetes-map-type"
EITHER, EMBEDDED = "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource"


class Step(NamedTuple):
    """``verb``: create, replace, merge, apply, status, scale, get, list of objects; redefine."""

    verb: str
    body: Any = None
    version: str = "v1"
    query: str = ""


class Case(NamedTuple):
    label: str
    definition: JSON
    steps: tuple[Step, ...] = ()


def definition(label: str, *versions: JSON, **spec: Any) -> JSON:
    group = f"{label}.example.com"
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [*versions], **spec}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": spec,
    }


def version(schema: JSON | None, name: str = "v1", **more: Any) -> JSON:
    shape = {} if schema is None else {"schema": {"openAPIV3Schema": schema}}
    return {"name": name, "served": True, "storage": name == "v1", **shape, **more}


def thing(spec: Any = None, name: str = "a", **more: Any) -> JSON:
    """An object; ``apiVersion`` comes with the step."""
    has = {} if spec is None else {"spec": spec}
    return {"kind": "Thing", "metadata": {"name": name}, **has, **more}


def obj(properties: JSON | None = None, **more: Any) -> JSON:
    has = {} if properties is None else {"properties": properties}
    return {"type": "object", **has, **more}


def arr(items: Any, **more: Any) -> JSON:
    return {"type": "array", "items": items, **more}


def rules(*texts: Any) -> JSON:
    return {RULES: [{"rule": each} if isinstance(each, str) else each for each in texts]}


def rooted(spec: JSON, **more: Any) -> JSON:
    return obj({"spec": spec, **more.pop("properties", {})}, **more)


# -- definitions that are only looked at ---------------------------------------------------------

# What stands as ``spec`` of the schema.
SPECS: dict[str, Any] = {
    "untyped": {},
    "odd-type": {"type": "blob"},
    "null-type": {"type": "null"},
    "list-without-items": {"type": "array"},
    "list-of-untyped": arr({}),
    "list-of-schemas": {"type": "array", "items": [TEXT, WHOLE]},
    "map-of-untyped": obj(additionalProperties={}),
    "closed": obj({"a": TEXT}, additionalProperties=False),
    "open": obj({"a": TEXT}, additionalProperties=True),
    "both": obj({"a": TEXT}, additionalProperties=TEXT),
    "unique": arr(TEXT, uniqueItems=True),
    "unsupported": obj({"a": TEXT}, id="x", definitions={"d": TEXT}, patternProperties={"p": TEXT}),
    "ref": {"$ref": "#/d", "type": "object"},
    "dependencies": obj({"a": TEXT}, dependencies={"a": ["b"]}),
    "additional-items": arr(TEXT, additionalItems=True),
    "bad-pattern": {"type": "string", "pattern": "(["},
    "preserve-false": {"type": "object", FREE: False},
    "preserve-alone": {FREE: True},
    "either": {EITHER: True},
    "either-typed": {"type": "string", EITHER: True},
    "either-any-of": {EITHER: True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "either-all-of": {
        EITHER: True,
        "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "^[0-9]+$"}],
    },
    "either-open": {EITHER: True, FREE: True},
    "either-embedded": {EITHER: True, EMBEDDED: True},
    "any-of-types": {"type": "string", "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "nested-forbidden": obj(
        {"a": TEXT},
        anyOf=[
            {"type": "object", "title": "t", "description": "d", "nullable": True, "default": {}},
            {"additionalProperties": {"pattern": "a"}, EITHER: True, EMBEDDED: True, FREE: True},
            {LIST: "set", KEYS: ["a"], MAP: "atomic", RULES: [{"rule": "true"}]},
        ],
    ),
    "nested-unknown": obj({"a": TEXT}, allOf=[{"properties": {"b": {"pattern": "x"}}}]),
    "nested-items": arr(TEXT, allOf=[{"items": {"pattern": "x"}}]),
    "nested-items-of-object": obj({"a": TEXT}, allOf=[{"items": {"pattern": "x"}}]),
    "nested-not": obj({"a": TEXT}, **{"not": {"required": ["a"], "type": "object"}}),
    "nested-metadata": obj(
        {"a": TEXT}, oneOf=[{"properties": {"metadata": {"required": ["name"]}}}]
    ),
    "nested-pattern": {"type": "string", "oneOf": [{"pattern": "("}]},
    "map-type-of-text": {"type": "string", MAP: "atomic"},
    "map-type-odd": obj({"a": TEXT}, **{MAP: "odd"}),
    "map-type-untyped": {FREE: True, MAP: "atomic"},
    "list-type-of-object": obj({"a": TEXT}, **{LIST: "set"}),
    "list-type-untyped": {FREE: True, LIST: "set"},
    "list-type-odd": arr(TEXT, **{LIST: "odd"}),
    "set-of-objects": arr(obj({"a": TEXT}), **{LIST: "set"}),
    "set-of-atomic-objects": arr(obj({"a": TEXT}, **{MAP: "atomic"}), **{LIST: "set"}),
    "set-of-sets": arr(arr(TEXT, **{LIST: "set"}), **{LIST: "set"}),
    "set-of-lists": arr(arr(TEXT), **{LIST: "set"}),
    "set-of-nullable": arr({**TEXT, "nullable": True}, **{LIST: "set"}),
    "keys-without-type": arr(obj({"a": TEXT}), **{KEYS: ["a"]}),
    "keys-of-set": arr(TEXT, **{LIST: "set", KEYS: ["a"]}),
    "map-without-keys": arr(obj({"a": TEXT}), **{LIST: "map"}),
    "map-of-texts": arr(TEXT, **{LIST: "map", KEYS: ["a"]}),
    "map-unknown-key": arr(obj({"a": TEXT}, required=["a"]), **{LIST: "map", KEYS: ["a", "b"]}),
    "map-optional-key": arr(obj({"a": TEXT}), **{LIST: "map", KEYS: ["a"]}),
    "map-twice-key": arr(obj({"a": TEXT}, required=["a"]), **{LIST: "map", KEYS: ["a", "a"]}),
    "map-object-key": arr(obj({"a": obj()}, required=["a"]), **{LIST: "map", KEYS: ["a"]}),
    "map-nullable-key": arr(
        obj({"a": {**TEXT, "nullable": True}}, required=["a"]), **{LIST: "map", KEYS: ["a"]}
    ),
    "map-nullable-item": arr(
        obj({"a": TEXT}, required=["a"], nullable=True), **{LIST: "map", KEYS: ["a"]}
    ),
    "map-default-key": arr(obj({"a": {**TEXT, "default": "x"}}), **{LIST: "map", KEYS: ["a"]}),
    "embedded-text": {"type": "string", EMBEDDED: True},
    "embedded-untyped": {EMBEDDED: True, FREE: True},
    "embedded-empty": {"type": "object", EMBEDDED: True},
    "embedded-map": {"type": "object", EMBEDDED: True, "additionalProperties": TEXT},
    "embedded-odd-meta": {
        "type": "object",
        EMBEDDED: True,
        "properties": {"kind": WHOLE, "apiVersion": WHOLE, "metadata": TEXT},
    },
    "embedded-in-metadata": {
        "type": "object",
        EMBEDDED: True,
        "properties": {"metadata": obj({"x": {"type": "object", EMBEDDED: True, FREE: True}})},
    },
    "default-wrong-type": obj({"a": {**WHOLE, "default": "x"}}),
    "default-unknown-field": obj({"a": {**obj({"b": TEXT}), "default": {"c": "x"}}}),
    "default-in-map": obj(additionalProperties={**TEXT, "default": "x"}),
    "default-in-list": arr({**TEXT, "default": "x"}),
    "default-too-small": obj({"a": {**WHOLE, "minimum": 5, "default": 1}}),
    "default-missing": obj({"a": {**obj({"b": TEXT}, required=["b"]), "default": {}}}),
    "default-embedded": obj(
        {"a": {"type": "object", EMBEDDED: True, FREE: True, "default": {"kind": "x"}}}
    ),
    "default-null": obj({"a": {**TEXT, "nullable": True, "default": None}}),
    "default-breaks-rule": obj({"a": {**WHOLE, "default": 1, **rules("self > 1")}}),
    "default-inner-breaks-rule": obj(
        {"a": {**obj({"b": {**WHOLE, **rules("self > 1")}}), "default": {"b": 1}}}
    ),
    "default-breaks-rule-for-new": obj(
        {
            "a": {
                **WHOLE,
                "default": 1,
                **rules({"rule": "oldSelf.hasValue()", "optionalOldSelf": True}),
            }
        }
    ),
    # rules
    "rule-missing": obj({"a": TEXT}, **{RULES: [{}]}),
    "rule-blank": obj({"a": TEXT}, **rules("  ")),
    "rule-blank-message": obj({"a": TEXT}, **rules({"rule": "true", "message": "  "})),
    "rule-broken-message": obj({"a": TEXT}, **rules({"rule": "true", "message": "a\nb"})),
    "rule-of-lines": obj({"a": TEXT}, **rules("true\n&& true")),
    "rule-of-lines-with-message": obj(
        {"a": TEXT}, **rules({"rule": "true\n&& true", "message": "m"})
    ),
    "rule-blank-expression": obj({"a": TEXT}, **rules({"rule": "true", "messageExpression": " "})),
    "rule-odd-reason": obj({"a": TEXT}, **rules({"rule": "true", "reason": "Odd"})),
    "rule-good-reason": obj({"a": TEXT}, **rules({"rule": "true", "reason": "FieldValueRequired"})),
    "rule-blank-path": obj({"a": TEXT}, **rules({"rule": "true", "fieldPath": "  "})),
    "rule-odd-path": obj({"a": TEXT}, **rules({"rule": "true", "fieldPath": ".b"})),
    "rule-path-without-dot": obj({"a": TEXT}, **rules({"rule": "true", "fieldPath": "a"})),
    "rule-path-quoted": obj({"a b": TEXT}, **rules({"rule": "true", "fieldPath": "['a b']"})),
    "rule-path-of-map": obj(
        {"m": obj(additionalProperties=TEXT)},
        **rules({"rule": "true", "fieldPath": ".m['x']"}),
    ),
    "rule-path-of-list": obj({"l": arr(TEXT)}, **rules({"rule": "true", "fieldPath": ".l[0]"})),
    "rule-path-of-lines": obj({"a": TEXT}, **rules({"rule": "true", "fieldPath": ".a\n"})),
    "rule-syntax": obj({"a": TEXT}, **rules("self.a ==")),
    "rule-unknown-field": obj({"a": TEXT}, **rules("self.b == 'x'")),
    "rule-unknown-name": obj({"a": TEXT}, **rules("that.b == 'x'")),
    "rule-no-bool": obj({"a": TEXT}, **rules("self.a")),
    "rule-dyn": obj({"a": {EITHER: True}}, **rules("self.a")),
    "rule-types": obj({"a": TEXT}, **rules("self.a > 1")),
    "rule-function": obj({"a": TEXT}, **rules("self.a.frob()")),
    "rule-two-faults": obj({"a": TEXT}, **rules("self.x == 1 || self.y == 2")),
    "rule-int-null": obj({"a": WHOLE}, **rules("self.a == null")),
    "rule-object-null": obj({"a": obj({"b": TEXT})}, **rules("self.a == null")),
    "rule-mixed-list": obj({"a": TEXT}, **rules("[1, 'x'].size() > 0")),
    "rule-message-no-text": obj({"a": WHOLE}, **rules({"rule": "true", "messageExpression": "1"})),
    "rule-message-broken": obj({"a": WHOLE}, **rules({"rule": "true", "messageExpression": "x"})),
    "rule-old-in-atomic-list": obj({"l": arr(obj({"a": TEXT}, **rules("self.a == oldSelf.a")))}),
    "rule-old-in-map-list": obj(
        {
            "l": arr(
                obj({"a": TEXT, "b": TEXT}, required=["a"], **rules("self.b == oldSelf.b")),
                maxItems=10,
                **{LIST: "map", KEYS: ["a"]},
            )
        }
    ),
    "rule-old-in-atomic-map": obj(
        {"m": obj({"a": {**TEXT, **rules("self == oldSelf")}}, **{MAP: "atomic"})}
    ),
    "rule-optional-unused": obj({"a": TEXT}, **rules({"rule": "true", "optionalOldSelf": True})),
    "rule-optional-false": obj({"a": TEXT}, **rules({"rule": "true", "optionalOldSelf": False})),
    "rule-optional-plain": obj(
        {"a": TEXT}, **rules({"rule": "self.a == oldSelf.a", "optionalOldSelf": True})
    ),
    "rule-at-untyped": {FREE: True, **rules("true")},
    "rule-sees-untyped": obj({"a": {FREE: True}}, **rules("has(self.a)")),
    "rule-at-list-of-untyped": arr({FREE: True}, **rules("true")),
    "rule-escapes": obj(
        {
            "a-b": TEXT,
            "a.b": TEXT,
            "a/b": TEXT,
            "a__b": TEXT,
            "for": TEXT,
            "namespace": TEXT,
            "1a": TEXT,
            "ä": TEXT,
            "_": TEXT,
        },
        **rules(
            "self.a__dash__b != '' && self.a__dot__b != '' && self.a__slash__b != ''",
            "self.a__underscores__b != '' && self.__for__ != '' && self.__namespace__ != ''",
            "self._ != ''",
        ),
    ),
    "rule-escape-missing": obj({"a-b": TEXT}, **rules("self.a-b != ''")),
    "rule-number-name": obj({"1a": TEXT}, **rules("self.1a != ''")),
    # costs
    "cost-text": obj({"a": TEXT}, **rules("self.a.contains('xxxxxxxxxxxxxx')")),
    "cost-two-texts": obj({"a": TEXT, "b": TEXT}, **rules("self.a.contains(self.b)")),
    "cost-unbounded-list": obj({"l": arr(TEXT)}, **rules("self.l.all(x, x.contains('abc'))")),
    "cost-bounded-list": obj(
        {"l": arr({**TEXT, "maxLength": 10}, maxItems=10)},
        **rules("self.l.all(x, x.contains('abc'))"),
    ),
    "cost-squared": obj({"l": arr(WHOLE)}, **rules("self.l.all(x, self.l.all(y, x != y))")),
    "cost-squared-bounded": obj(
        {"l": arr(WHOLE, maxItems=100)}, **rules("self.l.all(x, self.l.all(y, x != y))")
    ),
    "cost-at-items": arr({**TEXT, **rules("self.contains('abc')")}),
    "cost-at-items-bounded": arr(
        {**TEXT, "maxLength": 1000, **rules("self.contains('abcdefghijkl')")}, maxItems=2000
    ),
    "cost-below-two": obj(
        additionalProperties=arr(
            {**TEXT, "maxLength": 500, **rules("self.matches('^[a-z]+$')")}, maxItems=100
        ),
        maxProperties=100,
    ),
    "cost-below-open-map": obj(
        additionalProperties=obj({"a": {**WHOLE, **rules("self > 1")}}, required=["a"])
    ),
    "cost-of-message": obj(
        {"l": arr(TEXT)},
        **rules({"rule": "true", "messageExpression": "self.l.map(x, x + x).join(', ')"}),
    ),
    "cost-of-all": obj(
        {
            f"f{each}": {**TEXT, "maxLength": 600_000, **rules("self.matches('^[a-z]+[0-9]*$')")}
            for each in range(30)
        },
    ),
    "cost-enum": obj({"l": arr({**TEXT, "enum": ["a", "bb"]})}, **rules("self.l.all(x, x == 'a')")),
    "cost-formats": obj(
        {
            "d": {**TEXT, "format": "duration"},
            "t": {**TEXT, "format": "date-time"},
            "b": {**TEXT, "format": "byte"},
            "day": {**TEXT, "format": "date"},
        },
        **rules(
            "self.d > duration('1s')",
            "self.t > timestamp('2020-01-01T00:00:00Z')",
            "self.day.getFullYear() > 2000",
            "self.b == b'xyz'",
            "string(self.b) == 'xyz'",
        ),
    ),
}

# What stands as a whole schema.
SCHEMAS: dict[str, Any] = {
    "root-untyped": {"properties": {"spec": obj()}},
    "root-text": TEXT,
    "root-list": arr(TEXT),
    "root-map": obj(additionalProperties=TEXT),
    "root-nullable": obj({"spec": obj()}, nullable=True),
    "root-default": obj({"spec": obj()}, default={}),
    "root-embedded": obj({"spec": obj()}, **{EMBEDDED: True}),
    "root-free": {"type": "object", FREE: True},
    "root-odd-meta": obj({"apiVersion": WHOLE, "kind": WHOLE, "metadata": TEXT}),
    "root-meta-labels": obj({"metadata": obj({"labels": obj(additionalProperties=TEXT)})}),
    "root-meta-name": obj({"metadata": obj({"name": {**TEXT, "pattern": "^a"}})}),
    "root-meta-default": obj({"metadata": obj({"name": {**TEXT, "default": "x"}})}),
    "root-kind-default": obj({"kind": {**TEXT, "default": "x"}}),
    "root-rule": obj({"spec": obj()}, **rules("self.metadata.name == 'a' && has(self.spec)")),
    "root-rule-labels": obj({"spec": obj()}, **rules("has(self.metadata.labels)")),
    "root-rule-kind": obj({"spec": obj()}, **rules("self.kind == 'Thing'")),
    "none": None,
}


def _with(**spec: Any) -> JSON:
    return {"spec": spec}


def _version_with(**more: Any) -> JSON:
    return {"versions": [version(rooted(obj({"a": TEXT, "n": WHOLE})), **more)]}


WIDE = rooted(
    obj(
        {
            "a": TEXT,
            "n": WHOLE,
            "t": {"type": "boolean"},
            "f": {"type": "number"},
            "o": obj({"x": TEXT}),
            "l": arr(TEXT),
            "m": obj(additionalProperties=TEXT),
            "e": {**TEXT, "enum": ["x"]},
            **{f"n{each}": WHOLE for each in range(9)},
        }
    )
)


def _selecting(*paths: str) -> JSON:
    return {"versions": [version(WIDE, selectableFields=[{"jsonPath": path} for path in paths])]}


def _columns(**column: Any) -> JSON:
    return _version_with(additionalPrinterColumns=[column])


def _scale(**scale: Any) -> JSON:
    return _version_with(subresources={"scale": scale})


STATUS: JSON = {"subresources": {"status": {}}}
HOOK = {"clientConfig": {"url": "https://example.com/c"}, "conversionReviewVersions": ["v1"]}
# What the spec of the definition says beyond its names.
OUTLINES: dict[str, JSON] = {
    "no-versions": {"versions": []},
    "no-storage": {"versions": [version(obj(), storage=False)]},
    "two-storages": {"versions": [version(obj()), version(obj(), "v2", storage=True)]},
    "same-version": {"versions": [version(obj()), version(obj(), storage=False)]},
    "odd-version": {"versions": [version(obj(), "1v", storage=True)]},
    "one-without-schema": {"versions": [version(obj()), version(None, "v2")]},
    "odd-scope": {"scope": "Odd", "versions": [version(obj())]},
    "preserve": {"preserveUnknownFields": True, "versions": [version(obj())]},
    "deprecated": _version_with(deprecated=True, deprecationWarning="go away"),
    "warning-of-current": _version_with(deprecationWarning="go away"),
    "warning-empty": _version_with(deprecated=True, deprecationWarning=""),
    "warning-long": _version_with(deprecated=True, deprecationWarning="x" * 257),
    "warning-unprintable": _version_with(deprecated=True, deprecationWarning="a\tb"),
    "column-empty": _columns(),
    "column-odd-type": _columns(name="A", type="odd", jsonPath=".spec.a"),
    "column-odd-format": _columns(name="A", type="integer", format="odd", jsonPath=".spec.a"),
    "column-odd-path": _columns(name="A", type="integer", jsonPath="spec.a"),
    "column": _columns(name="A", type="integer", format="int32", jsonPath=".spec.a"),
    "scale-empty": _scale(),
    "scale-odd": _scale(specReplicasPath="spec.n", statusReplicasPath=".spec.n"),
    "scale-selector": _scale(
        specReplicasPath=".spec.n", statusReplicasPath=".status.n", labelSelectorPath=".x.y"
    ),
    "scale": _scale(specReplicasPath=".spec.n", statusReplicasPath=".status.n"),
    "scale-odd-dots": _scale(specReplicasPath=".spec.n[0]", statusReplicasPath=".status..n"),
    "select": _selecting(".spec.a", ".spec.n", ".spec.t", ".spec.e"),
    "select-nothing": _selecting(""),
    "select-unknown": _selecting(".spec.b"),
    "select-without-dot": _selecting("spec.a"),
    "select-number": _selecting(".spec.f"),
    "select-object": _selecting(".spec.o"),
    "select-list": _selecting(".spec.l"),
    "select-in-list": _selecting(".spec.l[0]"),
    "select-in-map": _selecting(".spec.m.x"),
    "select-quoted": _selecting(".spec['a']"),
    "select-metadata": _selecting(".metadata.name"),
    "select-twice": _selecting(".spec.a", ".spec.a"),
    "select-nine": _selecting(*(f".spec.n{each}" for each in range(9))),
    "conversion-none": {"conversion": {"strategy": "None"}, **_version_with()},
    "conversion-empty": {"conversion": {}, **_version_with()},
    "conversion-odd": {"conversion": {"strategy": "Odd"}, **_version_with()},
    "conversion-none-hook": {
        "conversion": {"strategy": "None", "webhook": HOOK},
        **_version_with(),
    },
    "conversion-hookless": {"conversion": {"strategy": "Webhook"}, **_version_with()},
    "conversion-hook": {"conversion": {"strategy": "Webhook", "webhook": HOOK}, **_version_with()},
    "conversion-hook-odd-reviews": {
        "conversion": {
            "strategy": "Webhook",
            "webhook": {**HOOK, "conversionReviewVersions": ["v9", "v9", "X"]},
        },
        **_version_with(),
    },
    "conversion-hook-http": {
        "conversion": {
            "strategy": "Webhook",
            "webhook": {**HOOK, "clientConfig": {"url": "http://example.com"}},
        },
        **_version_with(),
    },
    "conversion-hook-both": {
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                **HOOK,
                "clientConfig": {
                    "url": "https://example.com",
                    "service": {"name": "x", "namespace": "y"},
                },
            },
        },
        **_version_with(),
    },
    "conversion-hook-service": {
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                **HOOK,
                "clientConfig": {"service": {"name": "x", "namespace": "y", "port": 0}},
            },
        },
        **_version_with(),
    },
    "status-and-required": {"versions": [version(rooted(obj(), required=["spec"]), **STATUS)]},
    "status-and-any-of": {
        "versions": [version(rooted(obj(), anyOf=[{"required": ["spec"]}]), **STATUS)]
    },
    "status-and-max": {"versions": [version(rooted(obj(), maxProperties=5), **STATUS)]},
    "status-and-map-type": {"versions": [version(rooted(obj(), **{MAP: "atomic"}), **STATUS)]},
    "status-and-rules": {"versions": [version(rooted(obj(), **rules("true")), **STATUS)]},
    "all-alike": {
        "versions": [version(rooted(obj({"a": {}}))), version(rooted(obj({"a": {}})), "v2")]
    },
    "second-is-wrong": {
        "versions": [version(rooted(obj({"a": TEXT}))), version(rooted(obj({"a": {}})), "v2")]
    },
    "rule-wrong-in-second": {
        "versions": [
            version(rooted(obj({"a": TEXT}))),
            version(rooted(obj({"a": TEXT}, **rules("self.b == ''"))), "v2"),
        ]
    },
}


def refused() -> Iterator[Case]:
    """Definitions of all sorts, of which some are accepted."""
    for label, spec in SPECS.items():
        yield Case(label, definition(label, version(rooted(spec))))
    for label, schema in SCHEMAS.items():
        yield Case(label, definition(label, version(schema)))
    for label, spec in OUTLINES.items():
        yield Case(label, definition(label, **copy.deepcopy(spec)))


# -- definitions whose objects are written -------------------------------------------------------


def create(spec: Any = None, name: str = "a", version: str = "v1", **more: Any) -> Step:
    return Step("create", thing(spec, name, **more), version)


def replace(spec: Any = None, name: str = "a", **more: Any) -> Step:
    return Step("replace", thing(spec, name, **more))


def merge(patch: JSON, name: str = "a", sub: str = "") -> Step:
    return Step("merge", {"metadata": {"name": name}, **patch}, query=sub)


def redefine(*versions: JSON) -> Step:
    return Step("redefine", [*versions])


SHAPES = obj(
    {
        "text": {**TEXT, "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
        "choice": {**TEXT, "enum": ["x", "y"]},
        "small": {**WHOLE, "minimum": 1, "maximum": 9, "exclusiveMaximum": True},
        "even": {**WHOLE, "multipleOf": 2},
        "short": {**WHOLE, "format": "int32"},
        "part": {"type": "number", "minimum": 0.5},
        "flag": {"type": "boolean"},
        "either": {EITHER: True},
        "port": {EITHER: True, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "a"},
        "when": {**TEXT, "format": "date-time"},
        "list": arr(TEXT, minItems=1, maxItems=2),
        "set": arr(TEXT, **{LIST: "set"}),
        "keyed": arr(
            obj({"k": TEXT, "n": {**WHOLE, "default": 7}}, required=["k"]),
            **{LIST: "map", KEYS: ["k"]},
        ),
        "two": arr(
            obj({"k": TEXT, "p": {**TEXT, "default": "tcp"}}, required=["k"]),
            **{LIST: "map", KEYS: ["k", "p"]},
        ),
        "map": obj(additionalProperties=WHOLE, maxProperties=2, minProperties=1),
        "null": {**TEXT, "nullable": True},
        "one": obj({"a": TEXT, "b": TEXT}, oneOf=[{"required": ["a"]}, {"required": ["b"]}]),
        "any": obj({"a": TEXT, "b": TEXT}, anyOf=[{"required": ["a"]}, {"required": ["b"]}]),
        "all": obj({"a": WHOLE}, allOf=[{"properties": {"a": {"minimum": 5}}}]),
        "never": obj({"a": TEXT}, **{"not": {"required": ["a"]}}),
        "must": obj({"a": TEXT}, required=["a"]),
        "free": obj({"a": WHOLE}, **{FREE: True}),
        "embedded": {"type": "object", EMBEDDED: True, FREE: True},
        "typed": obj({"spec": obj({"n": {**WHOLE, "default": 3}})}, **{EMBEDDED: True}),
    }
)
SHAPE_BODIES: tuple[Any, ...] = (
    {},
    {"text": "abc", "choice": "x", "small": 3, "even": 4, "part": 1, "flag": True},
    {"text": "a"},
    {"text": "abcde"},
    {"text": "ABC"},
    {"text": 5},
    {"choice": "z"},
    {"small": 0},
    {"small": 9},
    {"small": 1.5},
    {"small": 2.0},
    {"even": 3},
    {"short": 3_000_000_000},
    {"part": 0.25},
    {"part": "x"},
    {"flag": "true"},
    {"either": 5},
    {"either": "5%"},
    {"either": 5.5},
    {"either": True},
    {"port": "bc"},
    {"port": "abc"},
    {"when": "2020-01-01T00:00:00Z"},
    {"when": "yesterday"},
    {"list": []},
    {"list": ["a", "b", "c"]},
    {"list": [1]},
    {"list": [None]},
    {"set": ["a", "b", "a"]},
    {"keyed": [{"k": "a"}, {"k": "b", "n": 1}]},
    {"keyed": [{"k": "a"}, {"k": "a", "n": 1}]},
    {"keyed": [{"n": 1}]},
    {"two": [{"k": "a"}, {"k": "a", "p": "udp"}]},
    {"two": [{"k": "a"}, {"k": "a", "p": "tcp"}]},
    {"map": {}},
    {"map": {"a": 1, "b": 2, "c": 3}},
    {"map": {"a": "x"}},
    {"map": {"a": None}},
    {"null": None},
    {"text": None},
    {"one": {}},
    {"one": {"a": "x", "b": "y"}},
    {"any": {}},
    {"any": {"b": "y"}},
    {"all": {"a": 1}},
    {"never": {"a": "x"}},
    {"must": {}},
    {"must": {"a": "x", "z": 1}},
    {"free": {"a": 1, "z": {"deep": [1, {"x": None}]}}},
    {"free": {"a": "x", "z": 1}},
    {"embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "odd": 1}, "z": 1}},
    {"embedded": {"kind": "Pod"}},
    {"embedded": {"apiVersion": "a/b/c", "kind": "P_d", "metadata": {"labels": {"?": "x"}}}},
    {"typed": {"apiVersion": "v1", "kind": "X", "spec": {"z": 1}, "odd": 1}},
    {"unknown": 1, "text": "abc"},
)
DEFAULTS = obj(
    {
        "n": {**WHOLE, "default": 1},
        "null": {**TEXT, "nullable": True, "default": "x"},
        "not-null": {**TEXT, "default": "y"},
        "deep": {**obj({"a": {**obj({"b": {**TEXT, "default": "z"}}), "default": {}}})},
        "list": arr(obj({"a": {**WHOLE, "default": 2}})),
        "map": obj(additionalProperties=obj({"a": {**WHOLE, "default": 3}})),
        "whole": {**obj({"x": WHOLE, "y": {**WHOLE, "default": 5}}), "default": {"x": 4}},
    },
    default={},
)
RULED = obj(
    {
        "min": WHOLE,
        "max": WHOLE,
        "name": {**TEXT, "maxLength": 20, **rules({"rule": "self == oldSelf", "message": "fixed"})},
        "once": {
            **TEXT,
            "maxLength": 20,
            **rules(
                {
                    "rule": "!oldSelf.hasValue() || oldSelf.value() == self",
                    "optionalOldSelf": True,
                    "message": "set once",
                }
            ),
        },
        "port": {EITHER: True, **rules("type(self) == int ? self < 100 : self.endsWith('%')")},
        "items": arr(
            obj(
                {"k": {**TEXT, "maxLength": 9}, "v": WHOLE},
                required=["k"],
                **rules(
                    {
                        "rule": "self.v < 10",
                        "messageExpression": "'%s has %d'.format([self.k, self.v])",
                    },
                    {"rule": "self.v >= oldSelf.v", "message": "never less", "fieldPath": ".v"},
                ),
            ),
            maxItems=5,
            **{LIST: "map", KEYS: ["k"]},
        ),
        "set": arr({**TEXT, "maxLength": 5}, maxItems=5, **{LIST: "set"}),
        "labels": obj(
            additionalProperties={**TEXT, "maxLength": 9, **rules("self != 'bad'")},
            maxProperties=5,
        ),
        "reason": obj(
            {"a": TEXT, "b": TEXT, "c": TEXT, "d": TEXT},
            **rules(
                {"rule": "!has(self.a)", "reason": "FieldValueForbidden", "fieldPath": ".a"},
                {"rule": "!has(self.b)", "reason": "FieldValueDuplicate", "fieldPath": ".b"},
                {"rule": "has(self.c)", "reason": "FieldValueRequired", "fieldPath": ".c"},
                {"rule": "!has(self.d)", "reason": "FieldValueInvalid", "message": " no d "},
            ),
        ),
        "div": {**WHOLE, **rules("10 / self > 1")},
        "at": arr(WHOLE, maxItems=3, **rules("self[1] > 0")),
        "message": {
            **WHOLE,
            **rules(
                {"rule": "self < 5", "messageExpression": "string(1 / (self - 5))"},
                {"rule": "self < 6", "messageExpression": "' '", "message": "plain"},
                {"rule": "self < 7", "messageExpression": "'a\\nb'"},
            ),
        },
        "null": {**TEXT, "nullable": True, **rules("self.size() < 3")},
        "dash-ed": {**TEXT, "maxLength": 9, **rules("self.startsWith('d')")},
        "for": TEXT,
        "time": {**TEXT, "format": "date-time"},
        "span": {**TEXT, "format": "duration"},
        "bytes": {**TEXT, "format": "byte", "maxLength": 20},
        "embedded": {
            "type": "object",
            EMBEDDED: True,
            FREE: True,
            **rules("self.kind == 'Pod' && self.metadata.name.startsWith('p')"),
        },
    },
    **rules(
        {"rule": "!has(self.min) || !has(self.max) || self.min <= self.max", "message": "min>max"},
        {"rule": "!has(self.set) || !has(oldSelf.set) || oldSelf.set.all(x, x in self.set)"},
        "!has(self.__for__) || self.__for__ == 'x'",
        "!has(self.dash__dash__ed) || self.dash__dash__ed.size() < 6",
        "!has(self.time) || self.time > timestamp('2020-01-01T00:00:00Z')",
        "!has(self.span) || self.span < duration('24h')",
        "!has(self.bytes) || self.bytes == b'abc'",
    ),
)
RULED_BODIES: tuple[Any, ...] = (
    {"min": 1, "max": 2},
    {"min": 3, "max": 2},
    {"port": 5},
    {"port": 500},
    {"port": "5%"},
    {"port": "5"},
    {"items": [{"k": "a", "v": 5}]},
    {"items": [{"k": "a", "v": 50}, {"k": "b", "v": 60}]},
    {"items": [{"k": "a"}]},
    {"labels": {"a": "good"}},
    {"labels": {"a": "bad"}},
    {"reason": {"a": "x", "b": "y", "d": "z"}},
    {"div": 2},
    {"div": 0},
    {"at": [1, 2]},
    {"at": [1]},
    {"at": [1, 0]},
    {"message": 5},
    {"message": 6},
    {"message": 7},
    {"null": None},
    {"null": "abc"},
    {"dash-ed": "xy"},
    {"dash-ed": "dddddddd"},
    {"for": "y"},
    {"time": "2019-01-01T00:00:00Z"},
    {"time": "2021-01-01t00:00:00.5z"},
    {"span": "25h"},
    {"span": "2 days"},
    {"span": "3 minutes"},
    {"bytes": "YWJj"},
    {"bytes": "YWJk"},
    {"embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1"}}},
    {"embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q1"}}},
    {"embedded": {"apiVersion": "v1", "kind": "Pod"}},
    {"min": "x", "max": 1},
    {"once": "x"},
    {"name": "x"},
)
LOOSE = obj({"a": TEXT, "l": arr(TEXT), "k": {"type": "object", "additionalProperties": TEXT}})
BUDGET = obj({"l": arr(WHOLE, maxItems=1000)}, **rules("self.l.all(x, self.l.all(y, x != -y - 1))"))
V1 = rooted(obj({"a": TEXT, "old": TEXT, "n": {**WHOLE, "default": 1}}))
V2 = rooted(obj({"a": TEXT, "new": TEXT, "n": {**WHOLE, "default": 2}}))


def played() -> Iterator[Case]:
    """Definitions, and objects that come, change and go."""
    bodies = tuple(create(each, f"a{at}") for at, each in enumerate(SHAPE_BODIES))
    yield Case("shapes", definition("shapes", version(rooted(SHAPES))), bodies)
    bodies = tuple(create(each, f"a{at}") for at, each in enumerate(RULED_BODIES))
    yield Case("ruled", definition("ruled", version(rooted(RULED))), bodies)
    yield from _defaulted()
    yield from _transitions()
    yield from _ratcheted()
    yield from _versions()
    yield from _subresources()
    yield from _sets()
    yield from _budgets()


def _defaulted() -> Iterator[Case]:
    yield Case(
        "defaulted",
        definition("defaulted", version(rooted(DEFAULTS))),
        (
            create(None, "a0"),
            create({}, "a1"),
            create({"null": None, "not-null": None, "n": None}, "a2"),
            create({"deep": {}}, "a3"),
            create({"deep": {"a": {"b": "given", "z": 1}}}, "a4"),
            create({"list": [{}, {"a": 1, "b": 2}]}, "a5"),
            create({"map": {"x": {}, "y": {"a": 9}}}, "a6"),
            create({"whole": {}}, "a7"),
            create({"z": 1, "deep": {"y": 2}}, "a8", odd=1),
            Step("create", thing({"z": 1}, "a9"), query="fieldValidation=Strict"),
            replace({}, "a4"),
            merge({"spec": {"n": None}}, "a1"),
            merge({"spec": {"map": {"x": None}}}, "a6"),
            Step("get", "a6"),
        ),
    )
    grown = obj({"a": TEXT, "n": {**WHOLE, "default": 5}}, default={})
    yield Case(
        "defaulted-later",
        definition("defaulted-later", version(rooted(LOOSE))),
        (
            create({"a": "x"}),
            create(None, "b"),
            redefine(version(rooted(grown))),
            Step("get", "a"),
            Step("get", "b"),
            merge({"spec": {"a": "y"}}),
            Step("get", "a"),
        ),
    )


def _transitions() -> Iterator[Case]:
    good = {
        "min": 1,
        "max": 5,
        "name": "n",
        "once": "o",
        "items": [{"k": "a", "v": 5}, {"k": "b", "v": 6}],
        "set": ["x", "y"],
    }
    changes: tuple[JSON, ...] = (
        {"name": "m"},
        {"once": "p"},
        {"items": [{"k": "b", "v": 6}, {"k": "a", "v": 6}]},
        {"items": [{"k": "a", "v": 1}]},
        {"items": [{"k": "c", "v": 1}]},
        {"set": ["y", "x"]},
        {"set": ["y"]},
        {"max": 0},
        {"once": None},
        {"name": None},
    )
    yield Case(
        "transitions",
        definition("transitions", version(rooted(RULED))),
        (
            create(good),
            *(
                step
                for change in changes
                for step in (
                    Step("merge", {"metadata": {"name": "a"}, "spec": change}, query="dryRun=All"),
                )
            ),
            merge({"spec": {"name": None}}),
            merge({"spec": {"name": "other"}}),
            merge({"metadata": {"labels": {"x": "y"}}}),
        ),
    )


def _ratcheted() -> Iterator[Case]:
    strict = rooted(
        obj(
            {
                "a": {**TEXT, "maxLength": 2, **rules("self.startsWith('x')")},
                "l": arr({**TEXT, "maxLength": 2}, maxItems=1),
                "k": obj(additionalProperties={**TEXT, "enum": ["x"]}),
                "z": TEXT,
            },
            **rules({"rule": "!has(self.l) || self.l.size() < 2", "message": "few"}),
        )
    )
    changes: tuple[JSON, ...] = (
        {"metadata": {"labels": {"x": "y"}}},
        {"spec": {"z": "new"}},
        {"spec": {"a": "abcde"}},
        {"spec": {"a": "yy"}},
        {"spec": {"a": "xy"}},
        {"spec": {"l": ["abcd", "efgh", "i"]}},
        {"spec": {"k": {"b": "new"}}},
        {"spec": {"k": {"b": "x"}}},
    )
    yield Case(
        "ratcheted",
        definition("ratcheted", version(rooted(LOOSE))),
        (
            create({"a": "abcd", "l": ["abcd", "efgh"], "k": {"a": "odd"}}),
            redefine(version(strict)),
            *(
                Step("merge", {"metadata": {"name": "a"}, **change}, query="dryRun=All")
                for change in changes
            ),
        ),
    )


def _versions() -> Iterator[Case]:
    both = (version(V1), version(V2, "v2"))
    yield Case(
        "versions",
        definition("versions", *both),
        (
            create({"a": "x", "old": "o", "new": "n"}),
            Step("get", "a"),
            Step("get", "a", "v2"),
            create({"a": "x", "old": "o", "new": "n"}, "b", "v2"),
            Step("get", "b"),
            Step("get", "b", "v2"),
            Step("get", "a", "v3"),
            Step("create", thing({}, "c", apiVersion="versions.example.com/v1"), "v2"),
            redefine(version(V1, storage=False), version(V2, "v2", storage=True)),
            Step("get", "a"),
            Step("get", "a", "v2"),
            merge({"spec": {"old": "again"}}),
            Step("get", "a", "v2"),
            redefine(version(V2, "v2", storage=True)),
            redefine(version(V1, served=False, storage=False), version(V2, "v2", storage=True)),
            Step("get", "b"),
            Step("get", "b", "v2"),
        ),
    )


def _subresources() -> Iterator[Case]:
    status = obj({"n": {**WHOLE, "maximum": 5}, "s": TEXT, "sel": TEXT})
    schema = rooted(
        obj({"n": WHOLE}),
        properties={"status": status},
        **rules("!has(self.status) || !has(self.status.n) || self.status.n <= self.spec.n"),
    )
    parts = {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.n",
            "statusReplicasPath": ".status.n",
            "labelSelectorPath": ".status.sel",
        },
    }
    yield Case(
        "parts",
        definition("parts", version(schema, subresources=parts)),
        (
            create({"n": 3}, status={"n": 1}),
            Step("get", "a"),
            merge({"status": {"n": 2}}),
            merge({"status": {"n": 2, "sel": "a=b"}}, sub="status"),
            merge({"status": {"n": 4}}, sub="status"),
            merge({"status": {"n": 9}}, sub="status"),
            merge({"status": {"n": "x"}}, sub="status"),
            merge({"spec": {"n": 1}}, sub="status"),
            merge({"spec": {"n": 1}}),
            Step("get", "a/scale"),
            merge({"spec": {"replicas": 5}}, sub="scale"),
            merge({"spec": {"replicas": 1}}, sub="scale"),
            merge({"spec": {"replicas": -1}}, sub="scale"),
            Step("get", "a"),
        ),
    )
    yield Case(
        "no-parts",
        definition("no-parts", version(schema)),
        (
            create({"n": 3}, status={"n": 1}),
            merge({"status": {"n": 2}}, sub="status"),
            Step("get", "a/scale"),
            merge({"status": {"n": 3}}),
        ),
    )
    fields = [{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.n"}, {"jsonPath": ".spec.t"}]
    yield Case(
        "selected",
        definition("selected", version(WIDE, selectableFields=fields)),
        (
            create({"a": "x", "n": 1, "t": True}),
            create({"a": "y", "n": 2}, "b"),
            create({}, "c"),
            *(
                Step("list", query=f"fieldSelector={text}")
                for text in (
                    "spec.a=x",
                    "spec.a!=x",
                    "spec.a=",
                    "spec.n=2",
                    "spec.t=true",
                    "spec.e=x",
                    "metadata.name=b",
                    "spec.a=x,spec.n=1",
                    "spec.a=x,spec.n=2",
                    ".spec.a=x",
                )
            ),
        ),
    )


def _sets() -> Iterator[Case]:
    """How lists, maps and objects are compared and added in rules."""
    few = {"maxItems": 5}
    word = {**TEXT, "maxLength": 3}
    lists = obj(
        {
            "plain": arr(word, **few),
            "set": arr(word, **few, **{LIST: "set"}),
            "keyed": arr(
                obj({"k": word, "v": word}, required=["k"]), **few, **{LIST: "map", KEYS: ["k"]}
            ),
            "o": obj({"a": word, "b": word}),
            "p": obj({"a": word}, **{FREE: True}),
            "m": obj(additionalProperties=word, maxProperties=4),
        },
        **rules(
            {"rule": "self.plain == oldSelf.plain", "message": "plain"},
            {"rule": "self.set == oldSelf.set", "message": "set"},
            {"rule": "self.keyed == oldSelf.keyed", "message": "keyed"},
            {"rule": "self.o == oldSelf.o", "message": "o"},
            {"rule": "self.p == oldSelf.p", "message": "p"},
            {"rule": "self.m == oldSelf.m", "message": "m"},
            {"rule": "(self.set + oldSelf.set).size() == 2", "message": "set+"},
            {"rule": "(self.keyed + oldSelf.keyed).size() == 2", "message": "keyed+"},
            {"rule": "(self.plain + oldSelf.plain).size() == 4", "message": "plain+"},
            {"rule": "self.m.all(k, self.m[k] != 'z')", "message": "m[k]"},
            {"rule": "self.keyed.exists(x, x == oldSelf.keyed[0])", "message": "exists"},
            {"rule": "oldSelf.keyed[0] in self.keyed", "message": "in"},
            {"rule": "self.set == ['a', 'b']", "message": "literal"},
            {"rule": "self.plain == ['a', 'b']", "message": "plain literal"},
            {"rule": "['b', 'a'] == self.set", "message": "literal first"},
        ),
    )
    first = {
        "plain": ["a", "b"],
        "set": ["a", "b"],
        "o": {"a": "x"},
        "p": {"a": "x", "q": 1},
        "keyed": [{"k": "a", "v": "1"}, {"k": "b", "v": "2"}],
        "m": {"a": "x", "b": "y"},
    }
    changes: tuple[JSON, ...] = (
        {},
        {"plain": ["b", "a"]},
        {"set": ["b", "a"]},
        {"set": ["b", "c"]},
        {"keyed": [{"k": "b", "v": "2"}, {"k": "a", "v": "1"}]},
        {"keyed": [{"k": "b", "v": "2"}, {"k": "c", "v": "1"}]},
        {"keyed": [{"k": "b", "v": "3"}, {"k": "a", "v": "1"}]},
        {"o": {"b": "y"}},
        {"p": {"q": 2}},
        {"m": {"a": "z"}},
    )
    yield Case(
        "compared",
        definition("compared", version(rooted(lists))),
        (
            create(first),
            *(
                Step("merge", {"metadata": {"name": "a"}, "spec": change}, query="dryRun=All")
                for change in changes
            ),
        ),
    )


def _budgets() -> Iterator[Case]:
    """Rules that may be dear, and objects that make them so."""
    many = obj(
        {
            "l": arr(
                {
                    **TEXT,
                    "maxLength": 200,
                    **rules("self.matches('^(a+)+$') || self.contains('b')"),
                },
                maxItems=300,
            )
        }
    )
    yield Case(
        "budget",
        definition("budget", version(rooted(many))),
        (create({"l": ["a" * 100] * 300}), create({"l": ["c"] * 3}, "b")),
    )
    yield Case(
        "budget-of-a-rule",
        definition("budget-of-a-rule", version(rooted(BUDGET))),
        (create({"l": [*range(50)]}), create({"l": [*range(1000)]}, "b")),
    )
