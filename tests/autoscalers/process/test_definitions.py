"""The ``.proto`` files are read as protoc reads them, and look on the wire as others write them."""

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from kubescene.autoscalers import (
    Autoscaler,
    EventRequest,
    EventType,
    HorizontalRecommendationResponse,
    MetricType,
    Pod,
    RecommendedPodResources,
    Stat,
    StatRequest,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.process import definitions
from kubescene.autoscalers.process.messages import (
    PLUGIN,
    capabilities_of,
    event_message,
    event_of,
    horizontal_message,
    horizontal_of,
    stat_message,
    stats_of,
    unreadable,
    vertical_message,
    vertical_of,
)

PROTOS = Path(definitions.__file__).parent / "protos"


@pytest.mark.parametrize("name", ["autoscaler", "go_plugin", "health"])
def test_a_file_is_read_as_protoc_reads_it(name: str, tmp_path: Path) -> None:
    out = tmp_path / "compiled"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}"]
    subprocess.run([*command, f"--descriptor_set_out={out}", f"{name}.proto"], check=True)
    compiled = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0]
    for message in compiled.message_type:
        for field in message.field:
            field.ClearField("json_name")
    assert definitions.parsed(name) == compiled


def test_an_event_about_an_autoscaler_has_skenarios_numbers() -> None:
    request = EventRequest("7", 5, EventType.DELETE, Autoscaler("hpa", "a"))
    wire = b"\x0a\x017\x10\x05\x18\x02\x22\x08\x0a\x03hpa\x12\x01a"
    assert event_message(request).SerializeToString() == wire
    assert event_of(PLUGIN["Event"].request.FromString(wire)) == request


def test_an_event_about_a_pod_has_skenarios_numbers() -> None:
    request = EventRequest("7", 5, EventType.CREATE, Pod("p", "active", 3, 500))
    wire = b"\x0a\x017\x10\x05\x2a\x10\x0a\x01p\x12\x06active\x18\x03\x20\xf4\x03"
    assert event_message(request).SerializeToString() == wire
    assert event_of(PLUGIN["Event"].request.FromString(wire)) == request


def test_stats_have_skenarios_numbers() -> None:
    request = StatRequest("7", (Stat(9, "p", MetricType.CONCURRENT_REQUESTS_MILLIS, 300),))
    wire = b"\x0a\x017\x12\x0a\x08\x09\x12\x01p\x18\x01\x20\xac\x02"
    assert stat_message(request).SerializeToString() == wire
    assert stats_of(PLUGIN["Stat"].request.FromString(wire)) == request


def test_stats_of_unknown_types_are_left_out() -> None:
    got = PLUGIN["Stat"].request.FromString(b"\x0a\x017\x12\x05\x08\x09\x12\x01p\x12\x02\x18\x09")
    assert [each.time for each in stats_of(got).stat] == [9]


def test_answers_have_skenarios_numbers() -> None:
    answer = HorizontalRecommendationResponse(3)
    assert horizontal_message(answer).SerializeToString() == b"\x08\x03"
    sized = VerticalRecommendationResponse((RecommendedPodResources(1, 2, 3, "cpu"),))
    wire = b"\x0a\x0b\x10\x01\x18\x02\x20\x03\x2a\x03cpu"
    assert vertical_message(sized).SerializeToString() == wire
    assert vertical_of(PLUGIN["VerticalRecommendation"].response.FromString(wire)) == sized


def test_capabilities_come_packed_and_unknown_ones_are_skipped() -> None:
    got = PLUGIN["GetCapabilities"].response.FromString(b"\x0a\x03\x00\x03\x63")
    assert capabilities_of(got.rec) == {0, 3}


@pytest.mark.parametrize("evict", [None, (), ("a", "b")])
def test_everything_that_an_answer_has_comes_back(evict: tuple[str, ...] | None) -> None:
    details = {"a": 1.1, "b": [1 << 70, None], "ä": {"c": True}}
    sized = VerticalRecommendationResponse(
        (), evict=evict, resize=("c",), admit=False, reason="so", details=details
    )
    assert vertical_of(vertical_message(sized)) == sized
    answer = HorizontalRecommendationResponse(3, "so", details)
    assert horizontal_of(horizontal_message(answer)) == answer


def test_a_large_amount_of_memory_comes_back() -> None:
    pod = Pod("p", "active", 3, 500, 64 << 30)
    request = EventRequest("7", 5, EventType.UPDATE, pod)
    assert event_of(event_message(request)) == request
    stats = StatRequest("7", (Stat(9, "p", MetricType.MEMORY_BYTES, 64 << 30),))
    assert stats_of(stat_message(stats)) == stats


def test_an_event_about_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="neither an autoscaler nor a pod"):
        event_of(PLUGIN["Event"].request(partition="1"))


def test_a_field_of_another_type_is_seen() -> None:
    response = PLUGIN["HorizontalRecommendation"].response
    assert "field rec" in unreadable(response.FromString(b"\x09" + bytes(8)))
    assert unreadable(response.FromString(b"\x08\x03\xc8\x3e\x01")) == ""
