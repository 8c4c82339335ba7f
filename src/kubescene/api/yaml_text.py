"""YAML as Kubernetes reads and writes it: safe, bounded in depth, and nothing but JSON's types.

Scenario files and request bodies share this reader. Times stay text, since Kubernetes reads them
itself and YAML's dates are not JSON. Numbers are those of kubectl's reader: 1e-7 is one, and 12:30
is text rather than minutes in base sixty. Keys that are given twice are noted, not lost.
"""

import re
from typing import Any, NamedTuple

import yaml

MAX_DEPTH = 200

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT, _FLOAT, _TIMESTAMP = (f"tag:yaml.org,2002:{name}" for name in ("int", "float", "timestamp"))

_NUMBERS = (
    (
        _INT,
        re.compile(
            r"[-+]?(?:0b[01][01_]*|0x[\da-fA-F][\da-fA-F_]*|0(?:o?[0-7][0-7_]*)?|[1-9][\d_]*)$",
            re.ASCII,
        ),
        list("-+0123456789"),
    ),
    (
        _FLOAT,
        re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$", re.ASCII),
        list("-+.0123456789"),
    ),
)
_BREAKS = re.compile("[\\r\\x85\\u2028\\u2029]")
"""Line breaks to YAML, letters to JSON."""


class Duplicate(NamedTuple):
    """A key that a mapping gives again, and where."""

    key: str
    mark: Any


class Document(NamedTuple):
    """One document and the keys it gives more than once; the last value of each has won."""

    value: Any
    duplicates: tuple[Duplicate, ...]


class _KubernetesLoader(_Loader):  # type: ignore[misc]  # chosen at run time
    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.duplicates: list[Duplicate] = []

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key in seen:
                self.duplicates.append(Duplicate(str(key), key_node.start_mark))
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


_KubernetesLoader.yaml_implicit_resolvers = {
    first: [pair for pair in resolvers if pair[0] not in (_INT, _FLOAT, _TIMESTAMP)]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


class _QuotingDumper(yaml.SafeDumper):
    """Puts in quotes what some reader of YAML would not take for text."""

    def ignore_aliases(self, data: Any) -> bool:
        """Shared parts are written out: anchors make a file hard to read and to compare."""
        del data
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = '"' if _BREAKS.search(text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_QuotingDumper.add_representer(str, _QuotingDumper.represent_text)

for _tag, _pattern, _first in _NUMBERS:
    _KubernetesLoader.add_implicit_resolver(_tag, _pattern, _first)
    _QuotingDumper.add_implicit_resolver(_tag, _pattern, _first)
_QuotingDumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]$"), list("yYnN"))


def parse_documents(text: str | bytes) -> list[Document]:
    """All documents of a text; raises `yaml.YAMLError`, RecursionError or ValueError."""
    _check_depth(text)
    loader = _KubernetesLoader(text)
    documents = []
    try:
        while loader.check_data():
            value = loader.get_data()
            documents.append(Document(value, tuple(loader.duplicates)))
            loader.duplicates.clear()
    finally:
        loader.dispose()
    return documents


def _check_depth(text: str | bytes) -> None:
    """Follow the events of the parser, which does not recurse: the loader does, on the C stack."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                mark: Any = event.start_mark
                raise yaml.MarkedYAMLError(
                    problem=f"nested deeper than {MAX_DEPTH} levels", problem_mark=mark
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def dump_yaml(value: Any) -> str:
    """Block-style YAML that every reader takes for the same JSON."""
    text = yaml.dump(value, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=True, width=100)
    assert isinstance(text, str)
    return text
