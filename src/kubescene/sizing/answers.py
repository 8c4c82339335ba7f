"""What was found as an answer: a sentence, tables of groups and of others' answers, measures."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from kubescene.sizing.groups import Mix
from kubescene.sizing.probes import Tried
from kubescene.sizing.searching import SizingResult, one_less
from kubescene.what_if.answers import Answer, AnswerTable, Cell
from kubescene.what_if.worlds import SHOWN, counted

FEEDBACK = (
    "whether pods would be the same with other nodes: they were not in all runs, so nothing is "
    "proven"
)
GROUPS, OTHERS = "Machines", "Answers"


def answer_of(found: SizingResult) -> Answer:
    """The answer as people and pipelines read it."""
    tables = [groups_table(found)] if found.best is not None else [needs_table(found)]
    tables.append(others_table(found))
    waiting = waiting_of(found)
    if waiting:
        rows: list[tuple[Cell, ...]] = list(waiting.pods[:SHOWN])
        tables.append(AnswerTable("Pods that wait", ("pod", "why"), rows))
    return Answer(
        question="size",
        unknown=[*found.unknown, *([FEEDBACK] if is_different(found) else [])],
        sentence=sentence_of(found),
        tables=tables,
        measures=measures_of(found),
        closer=closer_of(found),
    )


def waiting_of(found: SizingResult) -> Tried | None:
    """If nothing holds: the try in which the fewest pods wait."""
    if found.best is not None:
        return None
    tries = [*found.autoscaled.values(), *found.tries.values()]
    return min((each for each in tries if not each.error), key=lambda each: each.waiting)


def is_different(found: SizingResult) -> bool:
    if found.best is None:
        return False
    own = {each[:2] for each in found.tries[found.best].needs}
    return own != {each[:2] for each in found.needs}


# -- sentences -----------------------------------------------------------------------------------


def sentence_of(found: SizingResult) -> str:
    if found.best is None:
        return nothing_holds(found)
    least = "The least money" if found.objective == "cost" else "The fewest nodes"
    what = f"{mix_words(found, found.best)}{money(found, found.best)}"
    if found.is_proven:
        return f"{least} with which nobody waits: {what}. {beside(found)}"
    told = f"{least} found with which nobody waits: {what}; whether less would do is not known."
    return f"{told} {beside(found)}"


def beside(found: SizingResult) -> str:
    """The autoscaler's answer in relation to it."""
    own = found.autoscaled[found.autoscaler]
    name = f"the cluster autoscaler ({found.autoscaler})"
    if not own.holds:
        return f"With {name} {counted(own.waiting, 'pod')} wait."
    assert found.best is not None
    if own.mix == found.best:
        return f"It is what {name} orders."
    return f"T{name[1:]} orders {mix_words(found, own.mix)}{money(found, own.mix)}."


def nothing_holds(found: SizingResult) -> str:
    fewest = waiting_of(found)
    assert fewest is not None
    told = f"Nothing that was tried holds all pods: {counted(fewest.waiting, 'pod')} still wait"
    if found.bound is None:
        unmet = [each for each in found.needs if most_of(found, each.gives) < each.amount]
        if unmet:
            most = most_of(found, unmet[0].gives)
            return f"{told}. Needed is {unmet[0].words}, and all groups at their max give {most:,}."
    return (
        f"{told} with {mix_words(found, fewest.mix)}, after {counted(len(found.tries), 'attempt')}."
    )


def most_of(found: SizingResult, gives: Sequence[int]) -> int:
    return sum(each.most * part for each, part in zip(found.groups, gives, strict=True))


def mix_words(found: SizingResult, mix: Mix) -> str:
    parts = [
        f"{count} of {group.name}" for group, count in zip(found.groups, mix, strict=True) if count
    ]
    total = counted(sum(mix), "node")
    return f"{total} ({', '.join(parts)})" if parts else total


def money(found: SizingResult, mix: Mix) -> str:
    hourly = found.costs.hourly(mix)
    return "" if hourly is None else f", {amount(hourly)} {found.groups[0].currency} an hour"


def amount(hourly: Fraction) -> str:
    return f"{float(hourly):.4f}".rstrip("0").rstrip(".")


# -- tables --------------------------------------------------------------------------------------


def groups_table(found: SizingResult) -> AnswerTable:
    """How many of each group, and what happens with one less."""
    assert found.best is not None
    less = {
        at: found.tries.get(mix)
        for mix in one_less(found.best, found.groups)
        for at in range(len(mix))
        if mix[at] != found.best[at]
    }
    rows: list[tuple[Cell, ...]] = []
    for at, (group, count) in enumerate(zip(found.groups, found.best, strict=True)):
        price = "-" if group.price is None else amount(group.price * count)
        rows.append((group.name, count, price, binding(less.get(at), count)))
    return AnswerTable(GROUPS, ("group", "nodes", "per hour", "what binds"), rows)


def binding(less: Tried | None, count: int) -> str:
    """Why it is not one less."""
    if not count:
        return "-"
    if less is None:
        return "its min"
    if less.holds:
        return "nothing: one less would do"
    if less.error:
        return less.error
    reasons = ", ".join(less.reasons) or "no reason was told"
    pod = less.pods[0][0]
    more = f" and {less.waiting - 1:,} more" if less.waiting > 1 else ""
    return f"{reasons}: with one less {pod}{more} would wait"


def others_table(found: SizingResult) -> AnswerTable:
    rows: list[tuple[Cell, ...]] = []
    if found.best is not None:
        words = "search, proven" if found.is_proven else "search, not proven"
        rows.append(row_of(found, words, found.best, 0))
    for name, each in found.autoscaled.items():
        if each.error:
            continue
        rows.append(row_of(found, f"autoscaler ({name})", each.mix, each.waiting))
    if found.bound is not None:
        row = row_of(found, "no less, by sums", found.bound, "-")
        rows.append((*row[:-1], f"{row[-1]}: for {tightest(found)}"))
    return AnswerTable(OTHERS, ("by", "nodes", "per hour", "wait", "which"), rows)


def row_of(found: SizingResult, by: str, mix: Mix, waiting: Cell) -> tuple[Cell, ...]:
    hourly = found.costs.hourly(mix)
    named = zip(found.groups, mix, strict=True)
    which = ", ".join(f"{count} {group.name}" for group, count in named if count) or "none"
    return by, sum(mix), "-" if hourly is None else amount(hourly), waiting, which


def tightest(found: SizingResult) -> str:
    """The need that the bound has least to spare of."""
    assert found.bound is not None
    if not found.needs:
        return "nothing"

    def spare(at: int) -> Fraction:
        need = found.needs[at]
        given = sum(a * b for a, b in zip(need.gives, found.bound or (), strict=True))
        return Fraction(given, need.amount)

    return found.needs[min(range(len(found.needs)), key=spare)].words


def needs_table(found: SizingResult) -> AnswerTable:
    rows: list[tuple[Cell, ...]] = [
        (each.words, most_of(found, each.gives)) for each in found.needs[:SHOWN]
    ]
    return AnswerTable("Needed", ("what", "all groups at their max give"), rows)


# -- numbers -------------------------------------------------------------------------------------


def measures_of(found: SizingResult) -> dict[str, int | float]:
    """What a pipeline may fail on."""
    fewest = waiting_of(found)
    told: dict[str, int | float] = {"pending": 0 if fewest is None else fewest.waiting}
    mixes = {"": found.best, "autoscaler_": found.autoscaled[found.autoscaler].mix}
    for prefix, mix in {**mixes, "bound_": found.bound}.items():
        if mix is None:
            continue
        told[f"{prefix}nodes"] = sum(mix)
        hourly = found.costs.hourly(mix)
        if hourly is not None:
            told[f"{prefix}cost_per_hour"] = float(hourly)
    told["autoscaler_pending"] = found.autoscaled[found.autoscaler].waiting
    told["unproven"] = int(not found.is_proven)
    told["tries"] = len(found.tries)
    return told


def closer_of(found: SizingResult) -> list[str]:
    return [*_closer(found)]


def _closer(found: SizingResult) -> Iterator[str]:
    if found.best is not None and not found.is_proven and not is_different(found):
        yield f"--tries {2 * max(len(found.tries), 30)} looks at more"
    if found.best is not None:
        yield "a mix holds if the scenario, played with it, never leaves a pod waiting"
