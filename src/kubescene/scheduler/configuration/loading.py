"""Configurations from files and text."""

from pathlib import Path

from kubescene.api.text.reading import Bounds, Document, ReadingError, read_json
from kubescene.errors import SchedulerConfigurationError
from kubescene.scheduler.configuration.reading import read_configuration
from kubescene.scheduler.options import SchedulerOptions

MAX_SIZE = 3 * 1024 * 1024
_BOUNDS = Bounds(aliased=10_000)


def load_configuration(path: str | Path, base: SchedulerOptions | None = None) -> SchedulerOptions:
    """The options that a configuration file (YAML or JSON) stands for; see `read_configuration`."""
    source = str(path)
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise SchedulerConfigurationError(f"cannot be read: {error.strerror}", "", source) from None
    return parse_configuration(text, base, source=source)


def parse_configuration(
    text: bytes, base: SchedulerOptions | None = None, *, source: str
) -> SchedulerOptions:
    """The same for the text of a file."""
    if len(text) > MAX_SIZE:
        raise SchedulerConfigurationError(f"has more than {MAX_SIZE} bytes", "", source)
    try:
        document = read_text(text)
    except ReadingError as error:
        raise SchedulerConfigurationError(str(error), "", source) from None
    return read_configuration(document.value, base, source=source, duplicates=document.duplicates)


def read_text(text: bytes) -> Document:
    """JSON, or a YAML text with one document."""
    if text.lstrip().startswith(b"{"):
        return read_json(text, _BOUNDS)
    # YAML is imported only where there is some.
    from kubescene.api.text.yaml_text import read_yaml

    documents = [each for each in read_yaml(text, _BOUNDS) if each.value is not None]
    if len(documents) != 1:
        raise ReadingError(f"it must hold one document, not {len(documents)}")
    return documents[0]
