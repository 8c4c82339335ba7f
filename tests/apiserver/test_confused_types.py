"""The same over HTTP, with controllers at work: no 500 that nobody foresaw, and no stuck server."""

import logging
from typing import Any

import pytest

from apiserver.http import CONFIG_MAPS, Http, Reply, config_map
from kubescene.api.builtin import builtin_scheme
from registry.confusion import Confusion

HUGE = b"-9223372036854775809"
"""A number that JSON has and 64 bits have not."""

NODE_CONDITION = (
    b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{"conditions":[{"type":'
    + HUGE
    + b',"status":"True"}]}}'
)


def is_foreseen(reply: Reply) -> bool:
    return reply.status < 600 and "the server's log has the details" not in reply.body.decode()


def test_the_server_answers_in_words(live: Http, caplog: pytest.LogCaptureFixture) -> None:
    scheme = builtin_scheme()
    confusion = Confusion(11, scheme)
    kinds = [scheme.of_kind(gvk.api_version, gvk.kind) for gvk in confusion.kinds]
    with caplog.at_level(logging.ERROR):
        for kind in [each for each in kinds if each.gvk.group in ("", "apps", "batch")] * 4:
            version = kind.api_version
            root = f"/apis/{version}" if "/" in version else f"/api/{version}"
            path = f"{root}/namespaces/default" if kind.namespaced else root
            sample = confusion.sample(kind.gvk, "a")
            write(live, confusion, f"{path}/{kind.plural}", sample)
        assert live.post(CONFIG_MAPS, config_map("written")).status == 201
    assert caplog.records == []


def write(http: Http, confusion: Confusion, path: str, sample: dict[str, Any]) -> None:
    """One request of each kind."""
    obj, patch = confusion.confused(sample), confusion.patch(sample)
    replies = [
        http.post(path, sample),
        http.post(path, obj),
        http.put(f"{path}/a", obj),
        http.patch(f"{path}/a", patch),
        http.patch(f"{path}/a", patch, "strategic-merge-patch+json"),
        http.patch(f"{path}/a", confusion.operations(), "json-patch+json"),
        http.patch(f"{path}/a?fieldManager=m&force=true", obj, "apply-patch+yaml"),
        http.patch(f"{path}/a/status?fieldManager=m&force=true", obj, "apply-patch+yaml"),
        http.put(f"{path}/a/status", obj),
    ]
    for reply in replies:
        assert is_foreseen(reply), (path, obj, patch, reply.body)


@pytest.mark.parametrize("content_type", ["json", "yaml"])
def test_numbers_beyond_64_bits_are_refused(http: Http, content_type: str) -> None:
    body = b'{"metadata":{"name":"a"},"data":{"k":' + HUGE + b"}}"
    reply = http.post(CONFIG_MAPS, body, content_type=f"application/{content_type}")
    assert reply.status == 400


def test_a_condition_whose_type_is_a_number_cannot_be_applied(http: Http) -> None:
    reply = http.patch("/api/v1/nodes/n?fieldManager=m", NODE_CONDITION, "apply-patch+yaml")
    assert reply.status == 400
    assert "number into Go struct field NodeCondition.status.conditions.type" in reply.message
