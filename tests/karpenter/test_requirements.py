"""Requirements with bounds, against arithmetic on the values that they are asked for."""

import operator

import pytest

from kubescene.karpenter.requirements import requirement

COMPARISONS = {"Gt": operator.gt, "Gte": operator.ge, "Lt": operator.lt, "Lte": operator.le}


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_bound_has_the_numbers_on_its_side(name: str) -> None:
    found = requirement("cpu", name, ["4"])
    for number in range(9):
        assert found.has(str(number)) is COMPARISONS[name](number, 4)
    assert not found.has("many")


def test_two_bounds_have_what_both_have() -> None:
    found = requirement("cpu", "Gt", ["2"]).narrowed(requirement("cpu", "Lte", ["5"]))
    assert [number for number in range(9) if found.has(str(number))] == [3, 4, 5]


@pytest.mark.parametrize("values", [[], ["4", "5"], ["many"], ["4.5"]])
def test_a_bound_is_one_whole_number(values: list[str]) -> None:
    with pytest.raises(ValueError, match="cpu: Lt needs one whole number"):
        requirement("cpu", "Lt", values)
