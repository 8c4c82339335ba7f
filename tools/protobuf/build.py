"""Derive the table from which ``kubescene.apiserver.kubernetes.protobuf`` decodes request bodies.

Two sources inside the published Go modules are joined on the field number. The
``generated.proto`` files give numbers and types. The struct tags beside them give what
protobuf does not know: the JSON name, whether the field is inlined, and whether Go's JSON
encoder leaves a zero value out. ``register.go`` tells which messages are kinds.

::

    python tools/protobuf/build.py            # writes the table
    python tools/protobuf/build.py --check    # fails when the committed table is stale

The table is zlib-compressed JSON::

    {"source": "v0.36.6",
     "kinds": {"apps/v1": {"Deployment": 17}, "*": {"DeleteOptions": 3}},
     "messages": [["", [[1, "metadata", 40, ""], [3, "replicas", "int32", ""]]], ...]}

A message is its adapter (how its JSON form departs from a plain object, else "") and its
rows ``[number, JSON name, type, shape]``. A type is a scalar's name or the index of a
message. Shapes: "" always kept, "?" dropped when empty, "[]" list, "{}" map with string
keys, "^" inlined into the parent. Kinds under "*" exist in every group version.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSION = "v0.36.6"
MODULES = (
    "k8s.io/api",
    "k8s.io/apimachinery",
    "k8s.io/apiextensions-apiserver",
    "k8s.io/kube-aggregator",
)
OUTPUT = Path(__file__).parents[2] / "src/kubescene/apiserver/kubernetes/data/protobuf.json.z"

META = "k8s.io.apimachinery.pkg.apis.meta.v1"
SCALARS = frozenset({"string", "bool", "int32", "int64", "double", "bytes"})
NOT_SERVED = "testapigroup"

ADAPTERS = {
    f"{META}.Time": "time",
    f"{META}.MicroTime": "micro-time",
    f"{META}.FieldsV1": "json",
    "k8s.io.apimachinery.pkg.runtime.RawExtension": "json",
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "quantity",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
}
"""Go types that write themselves as JSON."""

for _version in ("v1", "v1beta1"):
    _package = f"k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.{_version}"
    ADAPTERS[f"{_package}.JSON"] = "json"
    ADAPTERS[f"{_package}.JSONSchemaPropsOrArray"] = "schema-or-list"
    ADAPTERS[f"{_package}.JSONSchemaPropsOrBool"] = "schema-or-bool"
    ADAPTERS[f"{_package}.JSONSchemaPropsOrStringArray"] = "schema-or-list"

MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(
    r"^  (?:(optional|repeated|required) |map<string, )([\w.]+)>? (\w+) = (\d+);", re.MULTILINE
)
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
SLICE = re.compile(r"^type (\w+) \[\]", re.MULTILINE)
RENAMED = re.compile(r"^type (\w+) (?:= )?(\w+)\.(\w+)$", re.MULTILINE)
TAGGED = re.compile(r"^\t(?:(\w+)\s+)?(\S+)\s+`([^`]*\bprotobuf:\"\w+,\d[^`]*)`", re.MULTILINE)
GROUP = re.compile(r"GroupName\s*=\s*\"([^\"]*)\"")
KNOWN = re.compile(r"AddKnownTypes\(\s*SchemeGroupVersion,(.*?)\)", re.DOTALL)
UNVERSIONED = re.compile(r"AddUnversionedTypes\(\s*Unversioned,(.*?)\)", re.DOTALL)
OPTIONS = re.compile(r"optionsTypes = \[\]runtime\.Object\{(.*?)^\}", re.MULTILINE | re.DOTALL)
POINTER = re.compile(r"&(\w+)\{\}")


@dataclass(frozen=True, slots=True)
class Field:
    """One line of a ``.proto`` message; ``label`` is empty for a map."""

    label: str
    type: str
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Tag:
    """What a Go struct says about a field."""

    name: str
    inline: bool
    omitempty: bool
    pointer: bool


@dataclass(frozen=True, slots=True)
class Package:
    """One API package: its messages and the Go declarations beside them."""

    name: str
    messages: dict[str, list[Field]]
    structs: dict[str, dict[int, Tag]]
    slices: frozenset[str]
    renamed: dict[str, str]
    register: str

    @property
    def api_version(self) -> str:
        match = GROUP.search(self.register)
        group, version = match[1] if match else "", self.name.rpartition(".")[2]
        return f"{group}/{version}" if group else version


def download(module: str, *, go: str) -> Path:
    """The module's source folder, fetched and checked by the Go tool."""
    with tempfile.TemporaryDirectory() as folder:
        command = [go, "mod", "download", "-json", f"{module}@{VERSION}"]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return Path(json.loads(done.stdout)["Dir"])


def read_packages(root: Path) -> Iterator[Package]:
    for proto in sorted(root.rglob("generated.proto")):
        if NOT_SERVED not in proto.parts:
            yield read_package(proto)


def read_package(proto: Path) -> Package:
    text = re.sub(r"^\s*//.*\n", "", proto.read_text(), flags=re.MULTILINE)
    name = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
    if name is None:
        raise SystemExit(f"{proto}: no package statement")
    go = "".join(
        path.read_text()
        for path in sorted(proto.parent.glob("*.go"))
        if not path.name.endswith(("_test.go", ".pb.go"))
    )
    register = proto.parent / "register.go"
    return Package(
        name=name[1],
        messages={
            m[1]: read_fields(m[2], where=f"{proto}: {m[1]}") for m in MESSAGE.finditer(text)
        },
        structs={m[1]: dict(read_tags(m[2])) for m in STRUCT.finditer(go)},
        slices=frozenset(SLICE.findall(go)),
        renamed={m[1]: f"{imported(m[2], name[1])}.{m[3]}" for m in RENAMED.finditer(go)},
        register=register.read_text() if register.exists() else "",
    )


def imported(alias: str, package: str) -> str:
    """Types are borrowed only from meta/v1 and from the same group's v1."""
    return META if alias == "metav1" else f"{package.rpartition('.')[0]}.{alias}"


def read_fields(body: str, *, where: str) -> list[Field]:
    fields = [Field(m[1] or "", m[2], m[3], int(m[4])) for m in FIELD.finditer(body)]
    if len(fields) != body.count(" = "):
        raise SystemExit(f"{where}: a field was not understood")
    return fields


def read_tags(body: str) -> Iterator[tuple[int, Tag]]:
    for match in TAGGED.finditer(body):
        tags = dict(re.findall(r"(\w+):\"([^\"]*)\"", match[3]))
        number = int(tags["protobuf"].split(",")[1])
        name, *options = tags.get("json", "-").split(",")
        yield (
            number,
            Tag(
                name=name,
                inline="inline" in options,
                omitempty="omitempty" in options,
                pointer=match[2].startswith("*"),
            ),
        )


class Table:
    """Collects the messages that the kinds reach, each under a stable index."""

    def __init__(self, packages: list[Package]) -> None:
        self.packages = {package.name: package for package in packages}
        self.indexes: dict[str, int] = {}
        self.messages: list[list[Any]] = []

    def index(self, full_name: str) -> int:
        if full_name in self.indexes:
            return self.indexes[full_name]
        self.indexes[full_name] = len(self.messages)
        entry: list[Any] = [self.adapter(full_name), []]
        self.messages.append(entry)
        entry[1] = self.rows(full_name)
        return self.indexes[full_name]

    def adapter(self, full_name: str) -> str:
        if full_name in ADAPTERS:
            return ADAPTERS[full_name]
        package, _, name = full_name.rpartition(".")
        return "items" if name in self.packages[package].slices else ""

    def rows(self, full_name: str) -> list[list[Any]]:
        package, _, name = full_name.rpartition(".")
        fields = self.packages[package].messages[name]
        if adapter := self.adapter(full_name):
            return [self.adapted_row(field, package, adapter) for field in fields]
        tags = self.tags(full_name) if fields else {}
        return [self.row(field, package, tags[field.number]) for field in fields]

    def tags(self, full_name: str) -> dict[int, Tag]:
        package, _, name = full_name.rpartition(".")
        if name in self.packages[package].structs:
            return self.packages[package].structs[name]
        return self.tags(self.packages[package].renamed[name])

    def row(self, field: Field, package: str, tag: Tag) -> list[Any]:
        kind = self.resolve(field.type, package)
        if tag.inline:
            return [field.number, "", kind, "^"]
        if not tag.name or tag.name == "-":
            raise SystemExit(f"{package}: field {field.name} has no JSON name")
        return [field.number, tag.name, kind, self.shape(field, kind, tag)]

    def adapted_row(self, field: Field, package: str, adapter: str) -> list[Any]:
        """Adapters know a list as ``items``, the rest by its protobuf name; JSON stays bytes."""
        kind = "raw" if adapter == "json" else self.resolve(field.type, package)
        if field.label == "repeated":
            return [field.number, "items", kind, "[]"]
        return [field.number, field.name.lower(), kind, ""]

    def shape(self, field: Field, kind: int | str, tag: Tag) -> str:
        if field.label == "repeated":
            return "[]"
        if not field.label:
            return "{}"
        can_be_empty = isinstance(kind, str) or self.messages[kind][0] == "items"
        return "?" if tag.omitempty and not tag.pointer and can_be_empty else ""

    def resolve(self, kind: str, package: str) -> int | str:
        if kind in SCALARS:
            return kind
        return self.index(kind[1:] if kind.startswith(".") else f"{package}.{kind}")

    def check_names(self) -> None:
        """An inlined field must not share its name with one beside it."""
        for full_name, index in self.indexes.items():
            names = list(self.json_names(index))
            if len(names) != len(set(names)):
                raise SystemExit(f"{full_name}: two fields have the same JSON name")

    def json_names(self, index: int) -> Iterator[str]:
        for _, name, kind, shape in self.messages[index][1]:
            if shape == "^":
                yield from self.json_names(kind)
            else:
                yield name


def read_kinds(packages: list[Package]) -> Iterator[tuple[str, str, str]]:
    """(apiVersion, kind, message) of all that is registered and has a protobuf form."""
    messages = {f"{package.name}.{name}" for package in packages for name in package.messages}
    for package in packages:
        blocks = [(package.api_version, KNOWN.findall(package.register))]
        if package.name == META:
            blocks.append(("v1", UNVERSIONED.findall(package.register)))
            blocks.append(("*", OPTIONS.findall(package.register)))
        for api_version, texts in blocks:
            for kind in POINTER.findall("".join(texts)):
                message = package.renamed.get(kind, f"{package.name}.{kind}")
                if message in messages:
                    yield api_version, kind, message


def build(packages: list[Package]) -> bytes:
    table = Table(packages)
    kinds: dict[str, dict[str, int]] = {}
    for api_version, kind, message in sorted(read_kinds(packages)):
        kinds.setdefault(api_version, {})[kind] = table.index(message)
    table.check_names()
    content = {"source": VERSION, "kinds": kinds, "messages": table.messages}
    return json.dumps(content, separators=(",", ":")).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--go", default="go", help="the Go tool")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    packages = [p for m in MODULES for p in read_packages(download(m, go=arguments.go))]
    table = build(packages)
    if arguments.check:
        sys.exit(zlib.decompress(OUTPUT.read_bytes()) != table and f"{OUTPUT.name} is stale")
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_bytes(zlib.compress(table, 9))


if __name__ == "__main__":
    main()
