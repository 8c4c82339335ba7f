"""Any pip can install what requirements/dev.txt pins, whatever is published later."""

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).parent.parent / "requirements" / "dev.txt"


def pinned() -> dict[str, Requirement]:
    """The pins by name."""
    lines = re.findall(r"^[a-z0-9][^\\\n]*", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    pins = [Requirement(line.strip()) for line in lines]
    return {canonicalize_name(pin.name): pin for pin in pins}


def test_pins_name_the_extras_that_others_ask_for() -> None:
    """An older pip looks for the newest of `name[extra]`, and refuses it for want of a hash."""
    pins = pinned()
    asked = [each for name in pins for each in _asked_by(name, pins[name].extras) if each.extras]
    assert asked, "nobody asks for extras: this test can go"
    missing = [
        f"{each.name}[{','.join(each.extras)}]"
        for each in asked
        if not each.extras <= pins[canonicalize_name(each.name)].extras
    ]
    assert missing == []


def _asked_by(name: str, extras: set[str]) -> list[Requirement]:
    try:
        wanted = [Requirement(each) for each in requires(name) or ()]
    except PackageNotFoundError:  # pinned for another platform or Python
        return []
    return [
        each
        for each in wanted
        if each.marker is None or any(each.marker.evaluate({"extra": of}) for of in ("", *extras))
    ]
