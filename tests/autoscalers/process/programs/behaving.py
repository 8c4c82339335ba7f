"""``behaving.py HOW``: a plugin that is well until it is asked for a number of pods."""

import os
import struct
import sys
import time
from typing import Any

import grpc

from kubescene.autoscalers import (
    Autoscaler,
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    Pod,
    serve,
)
from kubescene.autoscalers.process import messages, server
from kubescene.errors import ConfigurationError

HOW = sys.argv[1]


class Behaving(AutoscalerPlugin):
    """As many pods as there are; or what its argument says."""

    types = ("behaving.example.com",)
    capabilities = frozenset({Capability.EVENT, Capability.HORIZONTAL_RECOMMENDATION})

    def __init__(self) -> None:
        self._pods: dict[str, list[str]] = {}

    def event(self, request: EventRequest) -> None:
        if isinstance(request.object, Pod):
            self._pods[request.partition].append(request.object.name)
        elif request.type is EventType.DELETE:
            del self._pods[request.partition]
        else:
            self._begin(request.partition, request.object)

    def _begin(self, partition: str, object: Autoscaler) -> None:
        if HOW == "refuses":
            raise ConfigurationError("spec.any: not this one")
        if HOW == "dies-at-create":
            os._exit(4)
        assert partition not in self._pods
        self._pods[partition] = []

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        print("asked for a number", file=sys.stderr, flush=True)
        rec: Any = len(self._pods[request.partition])
        match HOW:
            case "dies":
                os._exit(3)
            case "hangs":
                time.sleep(3600)  # noqa: TID251 - a plugin that hangs
            case "raises":
                raise RuntimeError("no idea")
            case "negative":
                rec = -1
            case "nan":
                rec = float("nan")
            case "bare":
                return rec  # type: ignore[no-any-return] # a number instead of a response
            case "floods":
                for _ in range(20_000):
                    print("nobody has asked for this line, but it must be read by somebody")
        return HorizontalRecommendationResponse(rec, "as many as there are")


ordinary = server.handler


def with_wire_nan(method: Any, answer: Any) -> Any:
    """The number of pods as a double that is NaN, which no protobuf of ours would write."""
    if not method.path.endswith("/HorizontalRecommendation"):
        return ordinary(method, answer)
    raw = grpc.unary_unary_rpc_method_handler(
        lambda request, context: b"\x09" + struct.pack("<d", float("nan"))
    )
    return grpc.method_handlers_generic_handler("proto.Plugin", {"HorizontalRecommendation": raw})


if HOW == "no-controller":
    # It has no Shutdown, and nobody looks after SIGTERM.
    import signal

    del messages.CONTROLLER["Shutdown"]
    signal.signal = lambda *_: None
if HOW == "wire-nan":
    server.handler = with_wire_nan
if HOW == "tcp":
    server.LONGEST_PATH = 0
serve(Behaving())
