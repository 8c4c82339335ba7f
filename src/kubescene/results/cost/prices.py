"""A price list: what a node costs in an hour, by one of its labels.

::

    currency: USD
    label: node.kubernetes.io/instance-type   # this one if none is named
    hourly:
      m5.large: 0.096
      c5.xlarge: 0.17
      m5.large/spot: 0.03                     # of nodes whose labels say that they are spot
      m5.large/spot/eu-1a: 0.028              # and in this zone
    default: 0.1                              # for nodes that are not listed; without it: an error

Or CSV with the columns ``instance_type`` and ``hourly``, and if wanted ``capacity_type`` (``spot``,
``on-demand``) and ``zone``. A price of a capacity type or a zone goes before one without.
"""

import csv
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from kubescene.errors import ConfigurationError
from kubescene.results.states import Labels

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
SPOT, ON_DEMAND = "spot", "on-demand"
SPOT_LABELS: Mapping[str, str] = {
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacityType": "SPOT",
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
"""Labels by which clouds and Karpenter say that a node is spot."""
TYPE, HOURLY, CAPACITY, ZONE = "instance_type", "hourly", "capacity_type", "zone"
"""Columns of a price list in CSV."""


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices are at least 0 and finite."""

    currency: str = "USD"
    label: str = INSTANCE_TYPE
    hourly: dict[str, float] = {}
    default: float | None = None

    def find(self, labels: Labels) -> Fraction | None:
        """The price of a node with these labels, if the list has one."""
        keys = keys_of(labels.get(self.label, ""), labels)
        price = next((self.hourly[each] for each in keys if each in self.hourly), self.default)
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


def keys_of(kind: str, labels: Labels) -> Sequence[str]:
    """Under what the price of such a node may stand, the most exact first."""
    is_spot = any(labels.get(name) == value for name, value in SPOT_LABELS.items())
    capacity = SPOT if is_spot else ON_DEMAND
    zone = next((labels[each] for each in ZONES if each in labels), "")
    in_zone = (f"{kind}/{capacity}/{zone}", f"{kind}//{zone}") if zone else ()
    return *in_zone, f"{kind}/{capacity}", kind


def read_prices(path: str | Path) -> Prices:
    """The price list in a file, which is CSV if its name ends with that."""
    if Path(path).suffix == ".csv":
        return _read_csv(Path(path))
    from kubescene.api.text.reading import ReadingError
    from kubescene.api.text.yaml_text import read_yaml

    try:
        documents = read_yaml(Path(path).read_bytes())
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except ReadingError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return prices_from(documents[0].value if documents else {}, str(path))


def _read_csv(path: Path) -> Prices:
    hourly: dict[str, float] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.DictReader(file, strict=True)
            missing = [each for each in (TYPE, HOURLY) if each not in (lines.fieldnames or ())]
            if missing:
                raise ConfigurationError(f'{path}:1: there is no column "{missing[0]}"')
            for number, row in enumerate(lines, 2):
                key, price = _row(row, f"{path}:{number}")
                if key in hourly:
                    raise ConfigurationError(f"{path}:{number}: {key} has a price already")
                hourly[key] = price
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"{path}: is no CSV file: {error}") from error
    return prices_from({HOURLY: hourly}, str(path))


def _row(row: Mapping[str, Any], where: str) -> tuple[str, float]:
    kind, text = (row.get(TYPE) or "").strip(), (row.get(HOURLY) or "").strip()
    capacity, zone = ((row.get(name) or "").strip() for name in (CAPACITY, ZONE))
    if capacity not in ("", SPOT, ON_DEMAND):
        raise ConfigurationError(f"{where}: {CAPACITY} is {SPOT} or {ON_DEMAND}, not {capacity!r}")
    try:
        price = float(text)
    except ValueError:
        raise ConfigurationError(f"{where}: {HOURLY}: {text!r} is no number") from None
    parts = [kind, capacity, zone]
    while parts and not parts[-1]:
        parts.pop()
    return "/".join(parts), price


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
