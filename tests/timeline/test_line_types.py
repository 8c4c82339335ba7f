"""Types of lines are made before several threads read some."""

import pytest

from kubescene.timeline import lines


def below(kind: type) -> list[type]:
    found: list[type] = kind.__subclasses__()
    return [*found, *(each for one in found for each in below(one))]


def test_msgspec_has_looked_at_the_lines_of_every_kind_of_fact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "_LINE_TYPES", {})
    built: list[type] = []
    monkeypatch.setattr(lines, "build", built.append)
    lines.build_line_types()
    last = [kind for kind in below(lines.ReferringFact) if not kind.__subclasses__()]
    assert len(last) > 5
    assert {*last} == {*lines._LINE_TYPES}
    assert {*built} == {*lines._LINE_TYPES.values()}
