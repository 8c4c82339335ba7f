"""Bodies that differ in metadata only are decoded once, and come out as if each were the first."""

import pytest

from kubescene.registry import decoding
from kubescene.types import JsonObject
from registry.conftest import make_registry
from registry.confusion import Confusion

OTHERS: list[JsonObject] = [
    {},
    {"labels": {"a": "b"}},
    {"annotations": {"pod.beta.kubernetes.io/init-containers": "[]", "x": "y"}},
    {"annotations": {"pod.alpha.kubernetes.io/init-container-statuses": "[]"}, "labels": {}},
]


def test_for_every_kind_the_second_body_is_decoded_like_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decoding, "_BODIES", decoding.Remembered())
    registry = make_registry()
    confusion = Confusion(11, registry.scheme)
    for gvk in confusion.kinds:
        served = registry.type_of(gvk)
        sample = confusion.sample(gvk, "a")
        sample.pop("status", None)
        for given in OTHERS:
            body = {**sample, "metadata": {"name": f"n{len(given)}", **given}}
            expected = decoding.typed(body, served)
            assert decoding.typed_body(body, served) == expected, (gvk, given)
