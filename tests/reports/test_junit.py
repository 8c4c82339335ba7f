"""Test results as JUnit XML: valid for readers, whatever a message holds."""

import re
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest
import xmlschema

from kubescene.errors import ConfigurationError
from kubescene.reports.junit import (
    Suite,
    clear_junit,
    junit_xml,
    legal,
    suite_of,
    unplayed,
    write_junit,
)
from kubescene.results import ExpectationOutcome, Summary

SCHEMA = xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd"))

HELD = ExpectationOutcome("all placed", "true", True)
FALSE = ExpectationOutcome("few wait", "1 > 2", False, "3 wait")
NO_VALUE = ExpectationOutcome("by name", 'pod["x"].node == ""', False, "m", "no such key: x")


def summary(*outcomes: ExpectationOutcome, phase: str = "Succeeded", message: str = "") -> Summary:
    return Summary(
        scenario="s",
        phase=phase,
        message=message,
        seed=7,
        started="2026-01-01T00:00:00.000000Z",
        ended="2026-01-01T00:01:30.250000Z",
        expectations=[*outcomes],
    )


def read(*suites: Suite) -> Element:
    """The document, valid by the schema."""
    document = junit_xml(suites)
    SCHEMA.validate(document.decode())
    return fromstring(document)


def cases(root: Element) -> dict[str, str]:
    """The outcome of every case by its name."""
    found = {}
    for case in root.iter("testcase"):
        found[case.attrib["name"]] = ",".join(child.tag for child in case)
    return found


def test_each_outcome_is_a_case_of_its_own() -> None:
    other = ExpectationOutcome("by number", "step[9].nodes == 1", False, "m", "no such key: 9")
    root = read(suite_of(summary(HELD, FALSE, NO_VALUE, other)))
    assert cases(root) == {
        "the scenario is played": "",
        "all placed": "",
        "few wait": "failure",
        "by name": "error",
        "by number": "error",
    }
    suite = root[0]
    counts = {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "1", "errors": "2", "skipped": "0"}


def test_a_failure_says_what_and_by_which_expression() -> None:
    failure = next(read(suite_of(summary(FALSE))).iter("failure"))
    assert failure.attrib == {"type": "DoesNotHold", "message": "3 wait"}
    assert failure.text == "3 wait\nexpression: 1 > 2"
    error = next(read(suite_of(summary(NO_VALUE))).iter("error"))
    assert error.attrib == {"type": "NoValue", "message": "m: no such key: x"}


def test_of_a_run_that_failed_the_expectations_are_skipped() -> None:
    failed = summary(phase="Failed", message="step 1: no")
    root = read(suite_of(failed, ["few wait"]))
    assert cases(root) == {"the scenario is played": "error", "few wait": "skipped"}
    assert next(root.iter("error")).attrib == {"type": "ScenarioFailed", "message": "step 1: no"}


def test_a_scenario_that_cannot_be_read_is_an_error() -> None:
    root = read(unplayed("a.yaml", "a.yaml:3: not valid YAML"))
    assert cases(root) == {"the scenario is played": "error"}
    assert root[0].attrib["timestamp"] == "1970-01-01T00:00:00"


def test_times_are_those_of_the_scenario() -> None:
    suite = read(suite_of(summary(HELD)))[0]
    assert (suite.attrib["timestamp"], suite.attrib["time"]) == ("2026-01-01T00:00:00", "90.250")
    seed = {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")}["seed"]
    assert seed == "7"


def test_suites_are_numbered() -> None:
    root = read(suite_of(summary(HELD)), suite_of(summary(FALSE)))
    assert [suite.attrib["id"] for suite in root] == ["0", "1"]


def test_no_suite_is_valid_too() -> None:
    assert len(read()) == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b> & \"quoted\" 'text' > ]]> <![CDATA[x]]>", None),
        ("line\none\ttab\r", None),
        ("é 漢字 😀 \u2028", None),
        ("nul \x00 bell \x07 escape \x1b[31m", "nul \\x00 bell \\x07 escape \\x1b[31m"),
        ("delete \x7f next line \x85", "delete \\x7f next line \\x85"),
        ("half \ud83d pair \udfff", "half \\ud83d pair \\udfff"),
        ("not characters \ufffe \uffff", "not characters \\ufffe \\uffff"),
        ("private \ue000 and last \U0010fffd", None),
        ("", None),
    ],
    ids=["markup", "white", "unicode", "controls", "c1", "surrogates", "nonchars", "edge", "none"],
)
def test_any_text_can_be_told(text: str, shown: str | None) -> None:
    outcome = ExpectationOutcome(f"n {text}", "false", False, text)
    failure = next(read(suite_of(summary(outcome))).iter("failure"))
    assert failure.attrib["message"] == (text if shown is None else shown)
    assert (failure.text or "").startswith((text if shown is None else shown).replace("\r", ""))


def test_every_character_that_xml_refuses_is_replaced() -> None:
    refused = [chr(code) for code in range(0x20) if chr(code) not in "\t\n\r"]
    refused += [chr(0xD800), chr(0xDFFF), chr(0xFFFE), chr(0xFFFF)]
    assert all(legal(each) != each for each in refused)
    fine = [
        chr(code) for code in (0x9, 0xA, 0xD, 0x20, 0x7E, 0xA0, 0xD7FF, 0xE000, 0xFFFD, 0x10000)
    ]
    assert [legal(each) for each in fine] == fine


def test_equal_runs_give_equal_bytes() -> None:
    assert junit_xml([suite_of(summary(FALSE))]) == junit_xml([suite_of(summary(FALSE))])


def test_a_file_of_an_earlier_run_is_gone_before_the_next(tmp_path: Path) -> None:
    file = tmp_path / "made" / "junit.xml"
    clear_junit(file)
    write_junit(file, [unplayed("a", "b")])
    clear_junit(file)
    assert not file.exists()
    assert file.parent.is_dir()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="choose another --junit"):
        clear_junit(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"file/junit\.xml"):
        clear_junit(tmp_path / "file" / "junit.xml")


# -- other readers -----------------------------------------------------------------------------

JENKINS: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
    "system-err": (set(), set(), set()),
}
"""What the schema of Jenkins's xUnit plugin (junit-10) wants, allows, and lets elements hold."""


def every_outcome() -> bytes:
    failed = suite_of(summary(phase="Failed", message="no"), expected=["all placed"])
    return junit_xml([suite_of(summary(HELD, FALSE, NO_VALUE)), failed, unplayed("b", "line 3")])


def test_jenkins_s_schema_allows_all_that_is_written() -> None:
    for element in fromstring(every_outcome()).iter():
        required, allowed, children = JENKINS[element.tag]
        assert required <= element.attrib.keys() <= required | allowed
        assert {child.tag for child in element} <= children
        if element.tag.startswith("testsuite"):
            # SUREFIRE_TIME of the same schema.
            time = element.attrib.get("time", "")
            assert re.fullmatch(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?", time)


def test_junitparser_reads_the_same_outcomes() -> None:
    """Where it is installed: ``pip install junitparser``."""
    junitparser = pytest.importorskip("junitparser")
    found = junitparser.JUnitXml.fromstring(every_outcome())
    told = [
        (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) for suite in found
    ]
    assert told == [("s", 4, 1, 1, 0), ("s", 2, 0, 1, 1), ("b", 1, 0, 1, 0)]
    kinds = [[type(each).__name__ for each in case.result] for suite in found for case in suite]
    assert kinds == [[], [], ["Failure"], ["Error"], ["Error"], ["Skipped"], ["Error"]]
    found.update_statistics()
    assert (found.tests, found.failures, found.errors, found.skipped) == (7, 1, 3, 1)
