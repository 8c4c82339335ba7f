"""The bill, against what the objects of a world say at every moment of a run."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kubescene
from kubescene.clock import ScenarioStep
from kubescene.results import Prices, open_run
from kubescene.results.cost.bill import HOUR, PARTS, Bill, Shares
from kubescene.results.cost.rows import cost_rows, cost_series_rows, instance_rows
from kubescene.results.entries import Entries
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_file import column_decoder, columns_of, ledger_of
from kubescene.results.states import NodeState, PodAsk, PodState
from kubescene.runs.requests import RunRequest
from kubescene.runs.staging import stage
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from random_scenarios import API_VERSION, Drawn, Json, Lot

OURS = "kubescene.dev/v1alpha1"
INSTANCE = {"apiVersion": OURS, "kind": "Instance"}


def group(name: str, size: int, **spec: Any) -> Json:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    status = {"capacity": capacity, "allocatable": {**capacity, "cpu": "3500m", "memory": "7Gi"}}
    template = {"metadata": {"labels": {"pool": name}}, "status": status}
    price = {"perHour": "0.3", "spot": "0.1"}
    spec = {"price": price, "template": template, "size": size, **spec}
    return {"apiVersion": OURS, "kind": "NodeGroup", "metadata": {"name": name}, "spec": spec}


def pod(name: str, cpu: str = "1") -> Json:
    requests = {"cpu": cpu, "memory": "1Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]},
    }


def scenario(*operations: Json, **simulation: Any) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "metadata": {"name": "money"},
        "spec": {"operations": [*operations], "simulation": simulation},
    }


def op(step: int, kind: str, **body: Any) -> Json:
    return {"step": step, f"{kind}Operation": body}


def played(*operations: Json, **simulation: Any) -> Ledger:
    run = kubescene.run(scenario(*operations, **simulation))
    assert run.phase == "Succeeded", run.message
    return open_run(run).ledger


# -- any course of events ------------------------------------------------------------------------


def outage(lot: Lot, number: int) -> Json:
    what = lot.of("NodesGone", "SpotReclaim", "NodesSilent")
    spec: Json = {"nodes": {"matchLabels": {"pool": lot.of("a", "b")}}, "what": what, "count": 1}
    metadata = {"name": f"outage-{number}"}
    return {"apiVersion": OURS, "kind": "Outage", "metadata": metadata, "spec": spec}


def resize(lot: Lot) -> Json:
    return {
        "typeMeta": {"apiVersion": OURS, "kind": "NodeGroup"},
        "objectMeta": {"name": lot.of("a", "b")},
        "patch": f'{{"spec": {{"size": {lot.below(5)}}}}}',
    }


def drawn_scenario(lot: Lot) -> Json:
    """Machines that come, fail, boot for long, are given back, reclaimed and lost."""

    def drawn_group(name: str) -> Json:
        spec: Json = {
            "boot": {"time": lot.of("0s", "7s", "2m"), "registration": lot.of("0s", "3s")}
        }
        spec["shutdown"] = {"time": lot.of("0s", "20s")}
        if lot.happens(40):
            share, after = lot.of(0.3, 1.0), lot.of("0s", "30s")
            spec["faults"] = {"share": share, "after": after}
        if lot.happens(30):
            spec["quota"] = 2
        if lot.happens(30):
            spec["replace"] = True
        if lot.happens(30):
            spec["capacityType"] = "Spot"
        return group(name, lot.below(4), **spec)

    operations = [op(1, "create", object=drawn_group(name)) for name in ("a", "b")]
    operations.append(op(1, "create", object=make_node("own").cpu("4").memory("8Gi").build()))
    pods = (pod(f"p{number}", lot.of("1", "3")) for number in range(3))
    operations += [op(1, "create", object=each) for each in pods]
    operations.append(op(1, "advance", duration=lot.of("10s", "1m", "5m")))
    for step in range(2, 6):
        if lot.happens(60):
            operations.append(op(step, "create", object=outage(lot, step)))
        else:
            operations.append(op(step, "patch", **resize(lot)))
        operations.append(op(step, "advance", duration=lot.of("13s", "2m", "10m")))
    return scenario(*operations, op(6, "done"))


@st.composite
def drawn_scenarios(draw: st.DrawFn) -> Json:
    return drawn_scenario(Drawn(draw))


class Payer:
    """Pays every machine that exists for the time between two looks."""

    def __init__(self) -> None:
        self.paid: dict[str, Fraction] = {}
        self._rates: dict[str, Fraction] = {}
        self._looked = 0

    def look(self, instances: list[Any], now: int) -> None:
        for group, rate in self._rates.items():
            spent = rate * Fraction(now - self._looked, HOUR)
            self.paid[group] = self.paid.get(group, Fraction(0)) + spent
        self._looked, self._rates = now, {}
        for each in instances:
            status, spec = each.get("status") or {}, each["spec"]
            if "launchedAt" in status and "endedAt" not in status:
                before = self._rates.get(spec["group"], Fraction(0))
                self._rates[spec["group"]] = before + Fraction(spec["price"]["perHour"])


def check_bill(document: Json) -> None:
    run, payer = stage(RunRequest(scenario=document)), Payer()
    entries, position = Entries(), 0
    for _ in run.play():
        payer.look(run.cluster.list("instances"), run.cluster.clock.now())
    for fact in run.log.read(position, len(run.log)):
        entries.add(fact)
    ledger = entries.ledger
    ledger.close()
    assert ledger.phase == "Succeeded", ledger.message
    bill = Bill(ledger)
    found: dict[str, Fraction] = {}
    for each in bill.charges:
        if each.machine is not None:
            found[each.group] = found.get(each.group, Fraction(0)) + each.cost
            assert sum((each.part(name) for name in PARTS), Fraction(0)) == each.cost
            assert all(0 <= share <= 1 for share in each.shares if each.span)
    paid = {name: amount for name, amount in payer.paid.items() if amount}
    assert {name: amount for name, amount in found.items() if amount} == paid
    assert (bill.total or 0) == sum(paid.values(), Fraction(0))
    check_tables(bill)


def check_tables(bill: Bill) -> None:
    total = float(bill.total or 0)
    rows = [each.cost for each in instance_rows(bill) if each.cost is not None]
    assert sum(rows) == pytest.approx(total)
    assert sum(each.cost or 0 for each in cost_rows(bill)) == pytest.approx(total)
    series = [each for each in cost_series_rows(bill) if each.group == "a"]
    spent = sum((each.per_hour or 0) * (each.until_s - each.time_s) for each in series) / 3600
    assert spent == pytest.approx(series[-1].cost if series else 0)


@settings(max_examples=25, deadline=None)
@given(drawn_scenarios())
def test_the_bill_is_what_its_machines_cost_while_they_were_there(document: Json) -> None:
    check_bill(document)


@pytest.mark.parametrize("seed", range(12))
def test_so_it_is_for_these(seed: int) -> None:
    check_bill(drawn_scenario(Lot(seed)))


@pytest.mark.parametrize("boot", ["0s", "90s", "1000h"])
@pytest.mark.parametrize("seconds", [11, 60, 1200])
def test_so_it_is_for_what_an_autoscaler_orders_and_is_open_at_the_end(
    boot: str, seconds: int
) -> None:
    """Machines that boot when the run ends, that came and went, and that never come at all."""
    machines = group("a", 0, max=5, boot={"time": boot}, shutdown={"time": "20s"})
    flags = {
        "max-node-provision-time": "5m",
        "scale-down-unneeded-time": "1m",
        "scale-down-delay-after-add": "1m",
    }
    gone = {"typeMeta": {"apiVersion": "v1", "kind": "Pod"}}
    operations = [
        op(1, "create", object=machines),
        *(op(1, "create", object=pod(f"p{number}", "3")) for number in range(3)),
        op(1, "advance", duration=f"{seconds}s"),
        op(2, "delete", **gone, objectMeta={"name": "p0", "namespace": "default"}),
        op(2, "advance", duration=f"{seconds}s"),
        op(3, "done"),
    ]
    document = scenario(*operations, clusterAutoscaler=flags)
    check_bill(document)
    assert Bill(played(*operations, clusterAutoscaler=flags)).total


# -- one thing at a time -------------------------------------------------------------------------


def test_a_machine_costs_from_its_order_until_it_is_gone() -> None:
    ledger = played(
        op(1, "create", object=group("std", 1, boot={"time": "30m"}, shutdown={"time": "6m"})),
        op(1, "advance", duration="1h"),
        op(
            2,
            "delete",
            typeMeta={"apiVersion": OURS, "kind": "Instance"},
            objectMeta={"name": "std-0"},
        ),
        op(2, "advance", duration="1h"),
        op(3, "done"),
    )
    (charge,) = Bill(ledger).charges
    assert (charge.hours, charge.cost) == (Fraction(66, 60), Fraction("0.33"))
    assert charge.shares.without_node == Fraction(30, 66), "the node is there while it shuts down"
    (row,) = instance_rows(Bill(ledger))
    assert (row.state, row.launched_s, row.registered_s, row.ended_s) == ("Ended", 0, 1800, 3960)


def test_an_order_that_fails_costs_nothing_and_is_counted() -> None:
    ledger = played(
        op(1, "create", object=group("std", 2, quota=1)),
        op(1, "advance", duration="1h"),
        op(2, "done"),
    )
    (row,) = cost_rows(Bill(ledger))
    assert (row.instances, row.launched, row.failed, row.cost) == (1, 1, 1, 0.3)


def test_what_is_paid_is_paid_for_something() -> None:
    """Of 4 cores and 8Gi, 3.5 and 7 are offered, and 1 and 1 asked for: for half of the time."""
    ledger = played(
        op(1, "create", object=group("std", 1)),
        op(1, "advance", duration="1h"),
        op(2, "create", object=pod("p")),
        op(2, "advance", duration="1h"),
        op(3, "done"),
    )
    bill = Bill(ledger)
    (charge,) = bill.charges
    used = (Fraction(1, 4) + Fraction(1, 8)) / 2 / 2
    kept = (Fraction(1, 8) + Fraction(1, 8)) / 2
    assert charge.shares == Shares(used, 1 - used - kept, kept, Fraction(0))
    measures = open_run_measures(ledger)
    assert measures["cost"] == 0.6
    assert measures["cost_per_pod_hour"] == 0.6
    assert measures["cost_requested"] == float(Fraction("0.6") * used)
    assert "cost_per_million_requests" not in measures


def open_run_measures(ledger: Ledger) -> dict[str, Any]:
    from kubescene.results.measures import ALL
    from kubescene.results.measures.measure import Reading

    told: Any = SimpleNamespace(ledger=ledger, custom_facts=lambda: iter(()))
    reading = Reading(told)
    found = {each.name: each.value for measure in ALL for each in measure.values(reading)}
    return {name: value for name, value in found.items() if value is not None}


def test_a_pod_that_is_resized_asked_for_less_before() -> None:
    ledger = Ledger()
    ledger.at(ScenarioStep(1, 0), 0)
    offered = {"cpu": 4000, "memory": 8 << 30}
    ledger.node_written("n", NodeState(offered, {}, capacity=offered))
    for time, cpu in ((0, 1000), (HOUR, 3000)):
        ledger.at(ScenarioStep(1, 0), time)
        asked = PodState("n", "Running", PodAsk({"cpu": cpu, "memory": 1 << 30}))
        (ledger.pod_written if time else ledger.pod_created)("default", "p", "uid", asked)
    ledger.wait_until(2 * HOUR)
    ledger.close()
    (charge,) = Bill(ledger, Prices(default=1)).charges
    assert charge.shares.requested == (Fraction(1 + 3, 2 * 4) + Fraction(1, 8)) / 2
    again = ledger_of(column_decoder().decode(msgspec.json.encode(columns_of(ledger))))
    assert Bill(again, Prices(default=1)).charges == (charge,)


def test_amounts_and_times_agree_with_those_of_the_cluster() -> None:
    """Sums over nodes of what pods took are what the ledger adds up as time goes on."""
    nodes = [make_node(f"n{at}").cpu("4").memory("8Gi") for at in range(3)]
    pods = [make_pod(f"p{at}").cpu("1").memory("1Gi") for at in range(7)]
    builder = ScenarioBuilder("sums").create(*nodes, *pods).advance("7m").step(2)
    builder = builder.delete("v1", "Pod", "p1", namespace="default").advance("11m").step(3)
    run = kubescene.run(builder.delete("v1", "Node", "n0").advance("13m").done())
    ledger = open_run(run).ledger
    charges = Bill(ledger, Prices(default=1)).charges
    whole = sum(each.shares.requested * each.span * 2 for each in charges)
    expected = sum(
        Fraction(ledger.requested_time[kind], amount)
        for kind, amount in (("cpu", 4000), ("memory", 8 << 30))
    )
    assert whole == expected


def test_a_price_list_wins_and_machines_say_the_rest() -> None:
    ledger = played(
        op(1, "create", object=group("a", 1)),
        op(1, "create", object=group("b", 1)),
        op(1, "advance", duration="1h"),
        op(2, "done"),
    )
    prices = Prices(label="pool", hourly={"a": 7.0})
    assert [each.cost for each in Bill(ledger, prices).charges] == [7, Fraction("0.3")]
    assert Bill(ledger, prices).total == Fraction("7.3")


def test_machines_that_nobody_has_a_price_for_are_counted() -> None:
    ledger = played(
        op(1, "create", object=group("a", 1)),
        op(1, "create", object=make_node("own").cpu("4").memory("8Gi").build()),
        op(1, "advance", duration="1h"),
        op(2, "done"),
    )
    found = open_run_measures(ledger)
    assert (found["cost"], found["unpriced"], found["cost_of_a"]) == (0.3, 1, 0.3)
    assert found["instance_hours"] == 1.0


def test_two_currencies_make_no_sum() -> None:
    euros = {"perHour": "1", "currency": "EUR"}
    ledger = played(
        op(1, "create", object=group("a", 1)),
        op(1, "create", object=group("b", 1, price=euros)),
        op(1, "advance", duration="1h"),
        op(2, "done"),
    )
    found = open_run_measures(ledger)
    assert "cost" not in found
    assert (found["cost_of_a"], found["cost_of_b"]) == (0.3, 1.0)
    assert [each.currency for each in cost_rows(Bill(ledger))] == ["USD", "EUR"]


def test_expectations_speak_of_money_and_machines() -> None:
    expectations = [
        ("cheap", "measures.cost < 0.7"),
        ("two", "instances.size() == 2 && instances.all(i, i.hours == 1.0)"),
        ("by group", 'costs["std"].cost == 0.6 && costs["std"].instances_most == 2'),
        ("over time", 'cost_series.all(c, c.group != "*" || c.per_hour <= 0.6)'),
        ("dear", "measures.cost_idle > 5.0"),
    ]
    document = scenario(
        op(1, "create", object=group("std", 2)), op(1, "advance", duration="1h"), op(2, "done")
    )
    told = [{"name": name, "expression": text} for name, text in expectations]
    document["spec"]["expectations"] = told
    run = kubescene.run(document)
    held = {each.name: each.holds for each in run.expectations}
    assert held == {"cheap": True, "two": True, "by group": True, "over time": True, "dear": False}


def test_a_run_directory_tells_the_same(tmp_path: Any) -> None:
    document = drawn_scenario(Lot(3))
    run = kubescene.run(document, out=tmp_path / "run")
    of_memory, of_disk = open_run(run).ledger, open_run(tmp_path / "run").ledger
    assert list(instance_rows(Bill(of_memory))) == list(instance_rows(Bill(of_disk)))
    (tmp_path / "run" / "ledger.jsonl").unlink()
    of_lines = open_run(tmp_path / "run").ledger
    assert list(instance_rows(Bill(of_memory))) == list(instance_rows(Bill(of_lines)))


def test_without_machines_and_prices_there_is_no_money() -> None:
    run = kubescene.run(ScenarioBuilder("poor").create(make_node("n")).advance("1h").done())
    found = open_run(run)
    assert not [name for name in found.measures() if name.startswith(("cost", "instance"))]
    assert found.tables()["cost_series"].rows == []
