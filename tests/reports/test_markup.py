"""HTML out of Python values: text stays text."""

import pytest

from kubescene.markup import Markup, h, table, visible


def test_text_is_escaped_and_markup_is_not_escaped_again() -> None:
    assert h("p", "<b>&\"'", h("i", "x")) == "<p>&lt;b&gt;&amp;&quot;&#x27;<i>x</i></p>"


def test_attributes_are_escaped_and_absent_ones_left_out() -> None:
    made = h("td", class_='a"><script>', data_x=1, hidden=True, id=None, open=False)
    assert made == '<td class="a&quot;&gt;&lt;script&gt;" data-x="1" hidden></td>'


def test_children_may_be_lists_numbers_and_nothing() -> None:
    assert h("p", ["a", (h("b", each) for each in "xy")], None, 12345) == (
        "<p>a<b>x</b><b>y</b>12,345</p>"
    )


def test_elements_without_an_end_have_none() -> None:
    assert h("meta", charset="utf-8") == '<meta charset="utf-8">'


@pytest.mark.parametrize("character", ["\u202e", "\u2066", "\u200b", "\ufeff", "\x00", "\x9b"])
def test_what_turns_or_hides_text_is_named(character: str) -> None:
    assert visible(f"a{character}b") == f"a\\u{ord(character):04x}b"


def test_lines_and_other_alphabets_stay_as_they_are() -> None:
    assert visible("a\n\tÄ 中 שלום 🙂") == "a\n\tÄ 中 שלום 🙂"


def test_a_table_sets_numbers_to_the_right() -> None:
    made = table(("pod", "n"), [("<a>", 3)], numbers=("n",))
    assert '<th scope="col" class="n">n</th>' in made
    assert '<td>&lt;a&gt;</td><td class="n">3</td>' in made


def test_a_row_of_another_width_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        table(("pod", "n"), [("a",)])


def test_markup_is_a_string() -> None:
    assert isinstance(h("p"), Markup)
    assert isinstance(h("p"), str)
