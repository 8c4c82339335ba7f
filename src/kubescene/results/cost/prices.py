"""A price list: what a node costs in an hour, by one of its labels.

::

    currency: USD
    label: node.kubernetes.io/instance-type   # this one if none is named
    hourly:
      m5.large: 0.096
      c5.xlarge: 0.17
    default: 0.1                              # for nodes that are not listed; without it: an error
"""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from kubescene.errors import ConfigurationError
from kubescene.results.states import Labels

INSTANCE_TYPE = "node.kubernetes.io/instance-type"


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices are at least 0 and finite."""

    currency: str = "USD"
    label: str = INSTANCE_TYPE
    hourly: dict[str, float] = {}
    default: float | None = None

    def find(self, labels: Labels) -> Fraction | None:
        """The price of a node with these labels, if the list has one."""
        price = self.hourly.get(labels.get(self.label, ""), self.default)
        return None if price is None else Fraction(Decimal(str(price)))

    def of(self, name: str, labels: Labels) -> Fraction:
        """The price of a node of that name; `ConfigurationError` if the list has none."""
        price = self.find(labels)
        if price is None:
            kind = labels.get(self.label, "")
            what = f"{self.label}={kind}" if kind else f"no label {self.label}"
            raise ConfigurationError(
                f"the price list has no price for node {name} ({what}): add one under "
                "hourly, or a default"
            )
        return price


def read_prices(path: str | Path) -> Prices:
    """The price list in a file."""
    from kubescene.api.text.reading import ReadingError
    from kubescene.api.text.yaml_text import read_yaml

    try:
        documents = read_yaml(Path(path).read_bytes())
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except ReadingError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return prices_from(documents[0].value if documents else {}, str(path))


def prices_from(given: Mapping[str, Any], where: str) -> Prices:
    """The price list in an object; what is wrong with it is named."""
    try:
        prices = msgspec.convert(given, Prices)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"{where}: {error}; a price list has `currency`, `label`, `hourly` (numbers by the "
            "label's value) and `default`"
        ) from error
    for name, price in [*prices.hourly.items(), ("default", prices.default or 0)]:
        if not 0 <= price < float("inf"):
            raise ConfigurationError(f"{where}: the price of {name} cannot be {price}")
    return prices
