"""What is only faster can be left out, one by one and altogether."""

from dataclasses import asdict

import pytest

import kubescene
from kubescene.errors import ConfigurationError
from kubescene.shortcuts import ALL, PLAIN, Shortcuts


def test_a_world_takes_all_shortcuts_unless_it_is_plain() -> None:
    assert kubescene.Cluster().options.shortcuts == ALL
    assert kubescene.Cluster(plain=True).options.shortcuts == PLAIN


def test_all_are_on_and_none_is_on_in_a_plain_world() -> None:
    assert all(asdict(ALL).values())
    assert not any(asdict(PLAIN).values())


def test_one_that_is_not_there_cannot_be_switched_off() -> None:
    with pytest.raises(ConfigurationError, match="no shortcut 'magic'"):
        Shortcuts().without("magic")
