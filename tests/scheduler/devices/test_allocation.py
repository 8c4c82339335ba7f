"""The search for devices: which one is chosen, and why there is none."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.records.changes import ChangeType
from kubescene.scheduler.devices.allocated import Allocated
from kubescene.scheduler.devices.allocator import (
    CANNOT_ALLOCATE,
    INVALID_POOLS,
    Failed,
    Granted,
    Outcome,
    allocate,
)
from kubescene.scheduler.devices.classes import DeviceClass
from kubescene.scheduler.devices.cluster import Inventory
from kubescene.scheduler.devices.pools import Pool
from kubescene.scheduler.devices.requests import ClaimSpec
from kubescene.scheduler.devices.reserving import allocation_result
from kubescene.scheduler.devices.slices import DeviceId
from kubescene.types import JsonObject

DRIVER = "gpu.example.com"


def device(name: str, **fields: Any) -> JsonObject:
    return {"name": name, **fields}


def attributes(**values: str | int | bool) -> JsonObject:
    kinds = {str: "string", int: "int", bool: "bool"}
    return {name: {kinds[type(value)]: value} for name, value in values.items()}


def resource_slice(name: str, *devices: JsonObject, **spec: Any) -> JsonObject:
    pool = {"name": spec.pop("pool", "p"), "generation": spec.pop("generation", 1)}
    pool["resourceSliceCount"] = spec.pop("count", 1)
    spec = spec or {"nodeName": "n"}
    body = {"driver": spec.pop("driver", DRIVER), "pool": pool, "devices": [*devices], **spec}
    return {"metadata": {"name": name}, "spec": body}


def counters(name: str, **amounts: str) -> JsonObject:
    return {"name": name, "counters": {each: {"value": much} for each, much in amounts.items()}}


def consumes(counter_set: str, **amounts: str) -> list[JsonObject]:
    values = {name: {"value": much} for name, much in amounts.items()}
    return [{"counterSet": counter_set, "counters": values}]


def request(name: str = "r", count: int = 1, **spec: Any) -> JsonObject:
    return {"name": name, "exactly": {"deviceClassName": "c", "count": count, **spec}}


def every(name: str = "r", **spec: Any) -> JsonObject:
    return {"name": name, "exactly": {"deviceClassName": "c", "allocationMode": "All", **spec}}


def first_available(name: str, *alternatives: JsonObject) -> JsonObject:
    listed = [{"deviceClassName": "c", **each} for each in alternatives]
    return {"name": name, "firstAvailable": listed}


def selecting(expression: str) -> list[JsonObject]:
    return [{"cel": {"expression": expression}}]


def claim(*requests: JsonObject, **more: Any) -> ClaimSpec:
    return ClaimSpec(orjson.dumps({"requests": [*requests], **more}))


CLASSES = {
    "c": DeviceClass({"metadata": {"name": "c"}, "spec": {}}),
    "broken": DeviceClass(
        {"metadata": {"name": "broken"}, "spec": {"selectors": selecting("device.nope == 1")}}
    ),
}


def pools_of(*slices: JsonObject, node: str = "n", **labels: str) -> tuple[Pool, ...]:
    inventory = Inventory()
    for each in slices:
        inventory.take(each)
    return inventory.pools(node, labels)


def find(pools: Iterable[Pool], *claims: ClaimSpec, allocated: Allocated | None = None) -> Outcome:
    taken = allocated or Allocated()
    return allocate(claims, tuple(pools), "n", {}, classes=CLASSES, allocated=taken)


def names(outcome: Outcome) -> list[list[str]]:
    assert isinstance(outcome, Granted), outcome
    return [[each.device.id.device for each in taken] for taken in outcome.claims]


def allocation(*devices: str, **fields: Any) -> JsonObject:
    results = [{"driver": DRIVER, "pool": "p", "device": each, **fields} for each in devices]
    return {"devices": {"results": results}}


def taken(*allocations: JsonObject) -> Allocated:
    held = Allocated()
    for each in allocations:
        held.add(each)
    return held


THREE = resource_slice(
    "s",
    device("a", attributes=attributes(model="x", index=0)),
    device("b", attributes=attributes(model="y", index=1)),
    device("c", attributes=attributes(model="x", index=2)),
)


def test_a_share_that_is_given_back_frees_what_it_took_and_nothing_else() -> None:
    id = DeviceId(DRIVER, "p", "a")
    first = allocation("a", shareID="1", consumedCapacity={"memory": "1Gi"})
    second = allocation("a", shareID="2", consumedCapacity={"memory": "2Gi"})
    held = taken(first, second)
    held.remove(first)
    assert held.capacity(id) == {"memory": 2 * 1024**3 * 10**9}
    assert held.is_allocated(id)
    held.remove(second)
    assert held.capacity(id) is None
    assert not held.is_allocated(id)


# -- order -------------------------------------------------------------------------------------


def test_devices_are_taken_in_the_order_of_pools_slices_and_devices() -> None:
    pools = pools_of(
        resource_slice("z", device("p2"), pool="two"),
        resource_slice("b", device("p1b"), pool="one", count=2),
        resource_slice("a", device("p1z"), device("p1a"), pool="one", count=2),
        resource_slice("y", device("other"), driver="aaa.example.com", nodeName="n", pool="z"),
    )
    assert names(find(pools, claim(request(count=5)))) == [["other", "p1z", "p1a", "p1b", "p2"]]


def test_pools_with_devices_that_must_be_bound_come_last() -> None:
    pools = pools_of(
        resource_slice("a", device("bound", bindingConditions=["ready"]), pool="a"),
        resource_slice("b", device("plain"), pool="b"),
    )
    assert names(find(pools, claim(request(count=2)))) == [["plain", "bound"]]


def test_the_search_goes_back_where_it_gets_stuck() -> None:
    first = request("r0", selectors=selecting(f'device.attributes["{DRIVER}"].index < 2'))
    second = request("r1", selectors=selecting(f'device.attributes["{DRIVER}"].index == 0'))
    assert names(find(pools_of(THREE), claim(first, second))) == [["b", "a"]]


def test_claims_do_not_take_devices_from_each_other() -> None:
    claims = [claim(request(count=2)), claim(request())]
    assert names(find(pools_of(THREE), *claims)) == [["a", "b"], ["c"]]
    assert find(pools_of(THREE), *claims, claim(request())) is CANNOT_ALLOCATE


def test_what_is_allocated_is_gone_except_for_admin_access() -> None:
    held = taken(allocation("a"), allocation("b", adminAccess=True))
    assert names(find(pools_of(THREE), claim(request()), allocated=held)) == [["b"]]
    admin = claim(request("r0", adminAccess=True), request("r1", adminAccess=True))
    assert names(find(pools_of(THREE), admin, allocated=held)) == [["a", "b"]]


# -- all, and alternatives ---------------------------------------------------------------------


def test_all_means_every_device_that_can_be_selected() -> None:
    chosen = every(selectors=selecting(f'device.attributes["{DRIVER}"].model == "x"'))
    assert names(find(pools_of(THREE), claim(chosen))) == [["a", "c"]]
    assert find(pools_of(THREE), claim(chosen), allocated=taken(allocation("c"))) is CANNOT_ALLOCATE
    nothing = every(selectors=selecting(f'device.attributes["{DRIVER}"].model == "z"'))
    assert find(pools_of(THREE), claim(nothing)) is CANNOT_ALLOCATE


@pytest.mark.parametrize(
    ("slices", "state"),
    [
        ([resource_slice("s", device("a"), count=2)], "being updated"),
        ([resource_slice("s", device("a"), device("a"))], "invalid"),
    ],
)
def test_all_fails_where_a_pool_cannot_be_told(slices: list[JsonObject], state: str) -> None:
    text = f", request r: asks for all devices, but resource pool {DRIVER}/p is currently {state}"
    assert find(pools_of(*slices), claim(every())) == Failed(0, text)


def test_the_first_alternative_that_can_be_had_is_taken() -> None:
    demand = first_available("r", {"name": "many", "count": 4}, {"name": "two", "count": 2})
    outcome = find(pools_of(THREE), claim(demand))
    assert isinstance(outcome, Granted)
    assert names(outcome) == [["a", "b"]]
    assert outcome.chosen == ((1,),)
    assert outcome.claims[0][0].request.full_name == "r/two"


def test_a_later_request_may_need_another_alternative_before_it() -> None:
    demand = first_available("r0", {"name": "two", "count": 2}, {"name": "one", "count": 1})
    assert names(find(pools_of(THREE), claim(demand, request("r1", count=2)))) == [["a", "b", "c"]]


def test_a_claim_holds_no_more_than_32_devices() -> None:
    many = resource_slice("s", *(device(f"d{number:02}") for number in range(40)))
    text = ": number of requested devices 33 exceeds the claim limit of 32"
    assert find(pools_of(many), claim(request(count=33))) == Failed(0, text)
    assert len(names(find(pools_of(many), claim(request(count=32))))[0]) == 32
    demand = first_available("r0", {"name": "most", "count": 30}, {"name": "few", "count": 2})
    found = names(find(pools_of(many), claim(demand, request("r1", count=10))))
    assert len(found[0]) == 12


# -- constraints -------------------------------------------------------------------------------


def test_devices_can_be_asked_to_match() -> None:
    match = [{"matchAttribute": f"{DRIVER}/model"}]
    assert names(find(pools_of(THREE), claim(request(count=2), constraints=match))) == [["a", "c"]]
    assert find(pools_of(THREE), claim(request(count=3), constraints=match)) is CANNOT_ALLOCATE
    text = f", request r: cannot add device {DRIVER}/p/b because a claim constraint would not be"
    assert find(pools_of(THREE), claim(every(), constraints=match)) == Failed(
        0, f"{text} satisfied"
    )


def test_devices_can_be_asked_to_differ() -> None:
    differ = [{"distinctAttribute": f"{DRIVER}/model"}]
    both = claim(request("r0"), request("r1"), constraints=differ)
    assert names(find(pools_of(THREE), both)) == [["a", "b"]]


def test_only_the_last_device_of_a_request_counts_for_being_different() -> None:
    """As kube-scheduler has it: values are kept by request."""
    differ = [{"distinctAttribute": f"{DRIVER}/model"}]
    claimed = claim(request("r0", count=2), request("r1"), constraints=differ)
    assert names(find(pools_of(THREE), claimed)) == [["a", "b", "c"]]


def test_a_constraint_may_be_about_some_requests_only() -> None:
    match = [{"matchAttribute": f"{DRIVER}/model", "requests": ["r0", "r2"]}]
    claimed = claim(request("r0"), request("r1"), request("r2"), constraints=match)
    assert names(find(pools_of(THREE), claimed)) == [["a", "b", "c"]]


# -- taints ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("taint", "tolerations", "expected"),
    [
        ({"key": "k", "effect": "NoSchedule"}, [], "b"),
        ({"key": "k", "effect": "NoExecute"}, [], "b"),
        ({"key": "k", "effect": "None"}, [], "a"),
        ({"key": "k", "effect": "NoSchedule"}, [{"key": "k", "operator": "Exists"}], "a"),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, [{"key": "k", "value": "v"}], "a"),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, [{"key": "k"}], "b"),
        (
            {"key": "k", "effect": "NoExecute"},
            [{"operator": "Exists", "effect": "NoSchedule"}],
            "b",
        ),
    ],
)
def test_a_tainted_device_must_be_tolerated(
    taint: JsonObject, tolerations: list[JsonObject], expected: str
) -> None:
    pools = pools_of(resource_slice("s", device("a", taints=[taint]), device("b")))
    assert names(find(pools, claim(request(tolerations=tolerations)))) == [[expected]]


# -- counters and shares -----------------------------------------------------------------------

CARD = [
    resource_slice("counters", count=2, nodeName="n", sharedCounters=[counters("card", gb="80")]),
    resource_slice(
        "devices",
        device("full", consumesCounters=consumes("card", gb="80")),
        device("half-0", consumesCounters=consumes("card", gb="40")),
        device("half-1", consumesCounters=consumes("card", gb="40")),
        count=2,
    ),
]


def test_devices_share_counters() -> None:
    pools = pools_of(*CARD)
    assert names(find(pools, claim(request()))) == [["full"]]
    assert names(find(pools, claim(request(count=2)))) == [["half-0", "half-1"]]
    held = taken(allocation("half-0"))
    assert names(find(pools, claim(request()), allocated=held)) == [["half-1"]]
    assert find(pools, claim(request()), allocated=taken(allocation("full"))) is CANNOT_ALLOCATE


def test_counters_that_do_not_exist_make_a_pool_invalid() -> None:
    wrong = resource_slice(
        "devices", device("a", consumesCounters=consumes("typo", gb="1")), count=2
    )
    assert find(pools_of(CARD[0], wrong), claim(request())) is INVALID_POOLS


SHARED = resource_slice(
    "s",
    device(
        "nic",
        allowMultipleAllocations=True,
        capacity={
            "bandwidth": {
                "value": "10",
                "requestPolicy": {
                    "default": "2",
                    "validRange": {"min": "1", "max": "8", "step": "2"},
                },
            }
        },
    ),
)


@pytest.mark.parametrize(
    ("asked", "consumed"),
    [(None, "2"), ("1", "1"), ("2", "3"), ("6", "7"), ("8", None), ("0", "1")],
)
def test_a_share_is_cut_by_the_policy_of_the_device(
    asked: str | None, consumed: str | None
) -> None:
    capacity: Any = {} if asked is None else {"capacity": {"requests": {"bandwidth": asked}}}
    outcome = find(pools_of(SHARED), claim(request(**capacity)))
    if consumed is None:
        assert outcome is CANNOT_ALLOCATE
    else:
        assert isinstance(outcome, Granted)
        assert {key: str(each) for key, each in (outcome.claims[0][0].consumed or {}).items()} == {
            "bandwidth": consumed
        }


def test_shares_of_a_device_add_up() -> None:
    five: Any = {"capacity": {"requests": {"bandwidth": "5"}}}
    two = claim(request("r0", **five), request("r1", **five))
    assert names(find(pools_of(SHARED), two)) == [["nic", "nic"]]
    consumed = {"bandwidth": "6"}
    held = taken(allocation("nic", shareID="1", consumedCapacity=consumed))
    assert find(pools_of(SHARED), claim(request(**five)), allocated=held) is CANNOT_ALLOCATE
    assert find(pools_of(SHARED), claim(request(count=2))) is CANNOT_ALLOCATE
    full = taken(allocation("nic", shareID="1", consumedCapacity={"bandwidth": "10"}))
    assert find(pools_of(SHARED), claim(request()), allocated=full) is CANNOT_ALLOCATE
    unknown: Any = {"capacity": {"requests": {"nothing": "1"}}}
    plain = pools_of(resource_slice("s", device("a")))
    assert find(plain, claim(request(**unknown))) is CANNOT_ALLOCATE
    assert find(pools_of(SHARED), claim(request(**unknown))) is CANNOT_ALLOCATE


# -- pools -------------------------------------------------------------------------------------


def test_a_newer_generation_replaces_an_older_one() -> None:
    old = resource_slice("old", device("a"))
    assert names(find(pools_of(old), claim(request()))) == [["a"]]
    new = resource_slice("new", device("b"), generation=2)
    assert names(find(pools_of(old, new), claim(request()))) == [["b"]]
    elsewhere = resource_slice("new", device("b"), generation=2, nodeName="other", count=2)
    assert names(find(pools_of(old, elsewhere), claim(request()))) == [["a"]]
    stale = resource_slice("old", device("a"), count=2)
    assert find(pools_of(stale, elsewhere), claim(request())) is CANNOT_ALLOCATE


def test_nodes_reach_slices_by_name_by_labels_or_all() -> None:
    term = {"key": "zone", "operator": "In", "values": ["z"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    slices = [
        resource_slice("a", device("mine"), pool="a", nodeName="n"),
        resource_slice("b", device("zone"), pool="b", nodeSelector=selector),
        resource_slice("c", device("all"), pool="c", allNodes=True),
        resource_slice(
            "d",
            device("here", nodeName="n"),
            device("there", nodeName="m"),
            pool="d",
            perDeviceNodeSelection=True,
        ),
    ]
    assert names(find(pools_of(*slices, zone="z"), claim(request(count=4)))) == [
        ["mine", "zone", "all", "here"]
    ]
    assert find(pools_of(*slices, node="m"), claim(request(count=3))) is CANNOT_ALLOCATE


# -- what goes wrong ---------------------------------------------------------------------------


def test_an_expression_that_fails_says_whose_it_is() -> None:
    wrong = claim(request(selectors=selecting(f'device.attributes["{DRIVER}"].nope == 1')))
    text = ": selector #0: CEL runtime error: no such key: nope"
    assert find(pools_of(THREE), wrong) == Failed(0, text)
    outcome = find(pools_of(THREE), claim(request(deviceClassName="broken")))
    assert isinstance(outcome, Failed)
    assert outcome.claim == -1
    assert outcome.text.startswith(
        "class broken: selector #0: CEL compile error: compilation failed: ERROR: <input>:1:7: "
        "undefined field 'nope'"
    )
    text = ": selector #0: CEL compile error: must evaluate to bool or the unknown type, not string"
    assert find(pools_of(THREE), claim(request(selectors=selecting("device.driver")))) == Failed(
        0, text
    )


def test_a_search_that_takes_too_long_fails() -> None:
    many = resource_slice(
        "s", *(device(f"d{n}", attributes=attributes(index=n)) for n in range(40))
    )
    match = [{"matchAttribute": f"{DRIVER}/index", "requests": ["last"]}]
    hopeless = claim(request("first", count=12), request("last", count=2), constraints=match)
    outcome = find(pools_of(many), hopeless)
    assert outcome == Failed(-1, "node n: timed out trying to allocate devices")


# -- what is written ---------------------------------------------------------------------------


def test_configuration_comes_from_classes_and_claims() -> None:
    opaque = {"opaque": {"driver": DRIVER, "parameters": {"a": 1}}}
    mine = {"opaque": {"driver": DRIVER, "parameters": {"b": 2}}, "requests": ["r0/two"]}
    other = {**mine, "requests": ["r0/one"]}
    spec = claim(
        first_available("r0", {"name": "one", "count": 9}, {"name": "two", "count": 1}),
        request("r1"),
        config=[mine, other],
    )
    classes = {"c": DeviceClass({"metadata": {"name": "c"}, "spec": {"config": [opaque]}})}
    outcome = find(pools_of(THREE), spec)
    assert isinstance(outcome, Granted)
    made = allocation_result(
        spec, outcome.claims[0], outcome.chosen[0], "n", classes=classes, new_share=str
    )
    assert made["devices"]["config"] == [
        {**opaque, "source": "FromClass", "requests": ["r0/two", "r1"]},
        {**mine, "source": "FromClaim"},
    ]
    term = {"key": "metadata.name", "operator": "In", "values": ["n"]}
    assert made["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [term]}]}


# -- properties --------------------------------------------------------------------------------

MODELS = st.sampled_from(["x", "y", "z"])
DEVICES = st.lists(st.tuples(MODELS, st.integers(0, 2)), max_size=6)
REQUESTS = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(["", "x", "y"])), min_size=1, max_size=3
)


@settings(max_examples=150, deadline=None)
@given(DEVICES, REQUESTS, st.sets(st.integers(0, 5)), st.booleans())
def test_a_solution_keeps_all_rules_and_none_means_there_is_none(
    kinds: list[tuple[str, int]],
    wanted: list[tuple[int, str]],
    gone: set[int],
    match: bool,
) -> None:
    """Against trying every assignment."""
    devices = [
        device(f"d{at}", attributes=attributes(model=model, numa=numa))
        for at, (model, numa) in enumerate(kinds)
    ]
    requests = [
        request(
            f"r{at}",
            count,
            selectors=selecting(f'device.attributes["{DRIVER}"].model == "{model}"')
            if model
            else [],
        )
        for at, (count, model) in enumerate(wanted)
    ]
    rules = {"constraints": [{"matchAttribute": f"{DRIVER}/numa"}]} if match else {}
    held = taken(*(allocation(f"d{at}") for at in gone))
    outcome = find(
        pools_of(resource_slice("s", *devices)), claim(*requests, **rules), allocated=held
    )
    free = [at for at in range(len(kinds)) if at not in gone]
    groups = [free] if not match else [[a for a in free if kinds[a][1] == n] for n in range(3)]
    possible = any(_can_serve([kinds[at][0] for at in group], wanted) for group in groups)
    assert isinstance(outcome, Granted) is possible
    if isinstance(outcome, Granted):
        chosen = [int(name[1:]) for name in names(outcome)[0]]
        assert len(set(chosen)) == len(chosen) == sum(count for count, _ in wanted)
        assert not set(chosen) & gone
        assert not match or len({kinds[at][1] for at in chosen}) == 1


def _can_serve(models: list[str], wanted: list[tuple[int, str]]) -> bool:
    """Whether there are enough devices: those that ask for a model first, the others the rest."""
    left = [*models]
    for count, model in sorted(wanted, key=_is_open):
        fitting = [each for each in left if not model or each == model][:count]
        if len(fitting) < count:
            return False
        for each in fitting:
            left.remove(each)
    return True


def _is_open(wanted: tuple[int, str]) -> bool:
    return not wanted[1]


SLICES = st.tuples(
    st.sampled_from(["s0", "s1", "s2", "s3"]),
    st.sampled_from(["p", "q"]),
    st.integers(1, 2),
    st.integers(1, 3),
    st.sampled_from(["n", "m", "all", "zone", "counters"]),
)
EVENTS = st.lists(st.tuples(st.booleans(), SLICES), max_size=12)


def _made(form: tuple[str, str, int, int, str]) -> JsonObject:
    name, pool, generation, count, place = form
    term = {"key": "zone", "operator": "Exists"}
    places: Mapping[str, JsonObject] = {
        "n": {"nodeName": "n"},
        "m": {"nodeName": "m"},
        "all": {"allNodes": True},
        "zone": {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        "counters": {"nodeName": "n", "sharedCounters": [counters("card", gb="8")]},
    }
    devices = [] if place == "counters" else [device(f"{name}-a")]
    return resource_slice(
        name, *devices, pool=pool, generation=generation, count=count, **places[place]
    )


class _Change:
    """As much of a change as the inventory reads."""

    def __init__(self, kind: ChangeType, obj: JsonObject) -> None:
        self.type = kind
        self.object = obj
        self.record = self
        self.name = obj["metadata"]["name"]


def _seen(inventory: Inventory, node: str) -> list[Any]:
    labels = {"zone": "z"} if node == "m" else {}
    return [
        (each.id, each.is_incomplete, each.is_invalid, [d.id for d in each.devices])
        for each in inventory.pools(node, labels)
        if each.devices or not each.is_usable
    ]


@settings(max_examples=200, deadline=None)
@given(EVENTS)
def test_an_inventory_that_followed_equals_one_made_anew(
    events: list[tuple[bool, tuple[str, str, int, int, str]]],
) -> None:
    followed = Inventory()
    held: dict[str, JsonObject] = {}
    for gone, form in events:
        obj = _made(form)
        name = obj["metadata"]["name"]
        if gone and name not in held:
            continue
        kind = ChangeType.DELETED if gone else ChangeType.MODIFIED
        held.pop(name, None)
        if not gone:
            held[name] = obj
        change: Any = _Change(kind, obj)
        followed.changed(change)
        anew = Inventory()
        for each in held.values():
            anew.take(each)
        for node in ("n", "m", "k"):
            assert _seen(followed, node) == _seen(anew, node)
