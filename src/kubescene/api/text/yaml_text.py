"""YAML as Kubernetes reads and writes it: safe, bounded, and nothing but JSON's types.

What JSON could say as well is built while its events go by (`read_plain`): nearly all manifests are
of that kind, and a dump of a cluster has millions of events. Whatever is unusual (anchors, tags,
keys that are not text or are given twice, values that are refused, faults of the text) is read
again by the loader, which knows what to say. Before it builds anything, depth and aliases are
measured, since aliases share: a small text can stand for an enormous tree. Times stay text, since
Kubernetes reads them itself and YAML's dates are not JSON. Numbers are those of kubectl's reader:
1e-7 is one, and 12:30 is text rather than minutes in base sixty. Keys that are given twice are
noted, not lost.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import yaml

from kubescene.api.text.reading import Bounds, Document, Duplicate, ReadingError, scalar_problem
from kubescene.api.text.whole_numbers import whole

UNUSUAL = object()
"""What a reader of scalars answers where a closer look is needed."""


def read_plain(text: str | bytes, loader: Any, *, depth: int, scalar: Callable[[str], Any]) -> Any:
    """The documents of a text, or `UNUSUAL`. ``scalar`` says what an unquoted word stands for."""
    builder = _Builder(depth, scalar)
    try:
        for event in yaml.parse(text, Loader=loader):
            if not builder.take(event):
                return UNUSUAL
    except (yaml.YAMLError, UnicodeError):
        return UNUSUAL
    return builder.documents


class _Builder:
    """Puts values together; ``take`` is false as soon as something is unusual."""

    def __init__(self, depth: int, scalar: Callable[[str], Any]) -> None:
        self.documents: list[Any] = []
        self._depth = depth
        self._scalar = scalar
        self._open: list[Any] = [self.documents]
        self._key: str | None = None
        """The key whose value comes next, if the innermost value is an object."""
        self._known: dict[str, str] = {}

    def take(self, event: Any) -> bool:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            return self._pass_scalar(event)
        if kind is yaml.MappingStartEvent:
            return self._enter(event, {})
        if kind is yaml.SequenceStartEvent:
            return self._enter(event, [])
        if kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._open.pop()
            return True
        return kind is not yaml.AliasEvent

    def _pass_scalar(self, event: Any) -> bool:
        value = event.value
        if event.tag is not None or event.anchor is not None or scalar_problem(value):
            return False
        if event.implicit[0]:
            value = self._scalar(value)
        return value is not UNUSUAL and self._add(value)

    def _enter(self, event: Any, value: Any) -> bool:
        if event.tag is not None or event.anchor is not None or len(self._open) > self._depth:
            return False
        if type(self._open[-1]) is dict and self._key is None:
            return False
        self._add(value)
        self._open.append(value)
        return True

    def _add(self, value: Any) -> bool:
        """Put a value where it belongs; in an object, every other one is a key."""
        around = self._open[-1]
        if type(around) is list:
            around.append(value)
        elif self._key is None:
            if type(value) is not str or value in around:
                return False
            self._key = self._known.setdefault(value, value)
        else:
            around[self._key] = value
            self._key = None
        return True


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT, _FLOAT, _BOOL, _STR, _NULL, _TIMESTAMP = (
    f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "str", "null", "timestamp")
)
_WORDS_KEPT = 8192

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


class _KubernetesLoader(_Loader):  # type: ignore[misc]  # chosen at run time
    """Builds JSON's types only, and refuses the rest where it stands."""

    def __init__(self, stream: Any, bounds: Bounds) -> None:
        super().__init__(stream)
        self.duplicates: list[Duplicate] = []
        self._any_keys = bounds.any_keys

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        if isinstance(node, yaml.MappingNode):
            self._note_duplicates(node)
            self.flatten_mapping(node)
            if any(key.tag != _STR for key, _ in node.value):
                node.value = [(self._text_key(key), value) for key, value in node.value]
        return super().construct_mapping(node, deep=deep)

    def _note_duplicates(self, node: yaml.MappingNode) -> None:
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key in seen:
                mark = key_node.start_mark
                self.duplicates.append(Duplicate(str(key), mark.line + 1, mark.column + 1))
            seen.add(key)

    def _text_key(self, node: yaml.Node) -> yaml.Node:
        """The key as text: to Python, 1 and true would be one."""
        if node.tag == _STR or not isinstance(node, yaml.ScalarNode):
            return node
        key = self.construct_object(node)
        if not (self._any_keys and isinstance(key, bool | int | float)):
            raise _refusal(f"the key {key!r} is not text: put it in quotes", node.start_mark)
        text = str(key).lower() if isinstance(key, bool) else str(key)
        return yaml.ScalarNode(_STR, text, node.start_mark, node.end_mark)

    def construct_scalar_value(self, node: Any) -> Any:
        """A number, a boolean or a text, whatever its tag claims it to be."""
        kind = node.tag.rpartition(":")[2]
        try:
            value = getattr(yaml.constructor.SafeConstructor, f"construct_yaml_{kind}")(self, node)
        except (ValueError, LookupError, OverflowError):
            raise _refusal(
                f"not a number or boolean: {node.value[:40]!r}", node.start_mark
            ) from None
        if problem := scalar_problem(value):
            raise _refusal(f"{node.value[:40]!r} {problem}", node.start_mark)
        return whole(value) if isinstance(value, float) else value


_KubernetesLoader.yaml_implicit_resolvers = {
    first: [pair for pair in resolvers if pair[0] not in (_INT, _FLOAT, _TIMESTAMP)]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}
_KubernetesLoader.yaml_constructors = {
    tag: constructor
    for tag, constructor in _Loader.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in ("null", "seq", "map")
}
for _tag in (_INT, _FLOAT, _BOOL, _STR):
    _KubernetesLoader.add_constructor(_tag, _KubernetesLoader.construct_scalar_value)


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


def read_yaml(text: str | bytes, bounds: Bounds | None = None) -> list[Document]:
    """All documents of a YAML text; raises `ReadingError`."""
    try:
        return _documents(text, bounds or Bounds())
    except yaml.MarkedYAMLError as error:
        problem = ", ".join(filter(None, (error.context, error.problem)))
        mark: Any = error.problem_mark or error.context_mark
        where = (mark.line + 1, mark.column + 1) if mark else ()
        raise ReadingError(problem, *where) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise ReadingError(" ".join(str(error).split())) from error


def _documents(text: str | bytes, bounds: Bounds) -> list[Document]:
    plain = read_plain(text, _Loader, depth=bounds.depth, scalar=_plain_value)
    return _any_documents(text, bounds) if plain is UNUSUAL else [*map(Document, plain)]


@lru_cache(_WORDS_KEPT)
def _plain_value(word: str) -> Any:
    """What a word without quotes stands for."""
    loader = _reader_of_words()
    tag = loader.resolve(yaml.ScalarNode, word, (True, False))
    if tag == _NULL:
        return None
    if tag not in (_STR, _INT, _FLOAT, _BOOL):
        return UNUSUAL
    try:
        return loader.construct_scalar_value(yaml.ScalarNode(tag, word))
    except yaml.YAMLError:
        return UNUSUAL


@lru_cache
def _reader_of_words() -> Any:
    return _KubernetesLoader("", Bounds())


def _any_documents(text: str | bytes, bounds: Bounds) -> list[Document]:
    _check_bounds(text, bounds)
    loader = _KubernetesLoader(text, bounds)
    documents = []
    try:
        while loader.check_data():
            value = loader.get_data()
            documents.append(Document(value, tuple(loader.duplicates)))
            loader.duplicates.clear()
    finally:
        loader.dispose()
    return documents


def _check_bounds(text: str | bytes, bounds: Bounds) -> None:
    """Follow the events of the parser, which builds nothing and does not recurse.

    The loader recurses on the C stack, and what it shares between aliases a walk repeats.
    """
    meter = _Meter(bounds)
    actions: dict[type, Callable[[Any], None]] = {
        yaml.MappingStartEvent: meter.enter,
        yaml.SequenceStartEvent: meter.enter,
        yaml.MappingEndEvent: meter.leave,
        yaml.SequenceEndEvent: meter.leave,
        yaml.ScalarEvent: meter.pass_scalar,
        yaml.AliasEvent: meter.follow,
    }
    for event in yaml.parse(text, Loader=_Loader):
        if action := actions.get(type(event)):
            action(event)


class _AliasExtent:
    """How many values a node holds, itself included, and how many levels."""

    __slots__ = ("anchor", "levels", "values")

    def __init__(self, anchor: str | None, levels: int) -> None:
        self.anchor = anchor
        self.values = 1
        self.levels = levels


class _Meter:
    """What a text would become if its aliases were written out."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._open: list[_AliasExtent] = [_AliasExtent(None, 0)]
        self._anchors: dict[str, _AliasExtent | None] = {}
        self._aliased = 0

    def enter(self, event: Any) -> None:
        self._check_depth(1, event)
        self._open.append(_AliasExtent(event.anchor, 1))
        if event.anchor:
            self._anchors[event.anchor] = None

    def leave(self, event: Any) -> None:
        del event
        extent = self._open.pop()
        self._add(extent)
        if extent.anchor:
            self._anchors[extent.anchor] = extent

    def pass_scalar(self, event: Any) -> None:
        self._open[-1].values += 1
        if event.anchor:
            self._anchors[event.anchor] = _AliasExtent(event.anchor, 0)

    def follow(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            return  # The loader says so.
        extent = self._anchors[event.anchor]
        if extent is None:
            raise _refusal(f"the alias *{event.anchor} stands within itself", event.start_mark)
        self._aliased += extent.values
        if self._aliased > self._bounds.aliased:
            raise _refusal(
                f"its aliases stand for more than {self._bounds.aliased} values", event.start_mark
            )
        self._check_depth(extent.levels, event)
        self._add(extent)

    def _check_depth(self, levels: int, event: Any) -> None:
        if len(self._open) - 1 + levels > self._bounds.depth:
            raise _refusal(f"nested deeper than {self._bounds.depth} levels", event.start_mark)

    def _add(self, part: _AliasExtent) -> None:
        around = self._open[-1]
        around.values += part.values
        around.levels = max(around.levels, part.levels + 1)


def _refusal(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def dump_yaml(value: Any) -> str:
    """Block-style YAML that every reader takes for the same JSON."""
    text = yaml.dump(value, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=True, width=100)
    assert isinstance(text, str)
    return text
