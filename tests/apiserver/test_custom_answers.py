"""Definitions and their objects: our answers against those of the real kube-apiserver v1.36.

`registry.custom_cases` says what is asked, `registry.recorded_customs` how it was recorded.
"""

import re
from pathlib import Path
from typing import Any

from apiserver.http import Http
from real_programs import require_program
from registry.recorded_customs import (
    Answer,
    Send,
    all_asked,
    asked_of_the_real,
    recorded_answers,
)


def sender(http: Http) -> Send:
    def send(method: str, path: str, body: Any) -> tuple[int, dict[str, Any], list[str]]:
        if method == "WAIT":
            return 0, {}, []
        form = "application/merge-patch+json" if method == "MERGE" else "application/json"
        verb = "PATCH" if method == "MERGE" else method
        reply = http.request(verb, path, body, content_type=form)
        warnings = [it.partition(" - ")[2] for it in reply.all("warning")]
        read = reply.json if reply.body.startswith(b"{") else {}
        return reply.status, read, warnings

    return send


def told(text: str) -> str:
    """A message without what is knowingly different (`docs/design/0026-cel.md`).

    Of an expression with several faults ours tells the first; at a syntax error ANTLR has two words
    for the same; what Go's parsers add to a message is left out.
    """
    text = re.sub(r"(\nERROR: <input>[^\n]*(\n \|[^\n]*)*)+", "", text)
    text = re.sub(r"Syntax error: (mismatched|extraneous) input", "Syntax error: input", text)
    return re.sub(r": parsing time .*? evaluating", " evaluating", text)


def compared(answer: Answer) -> Answer:
    causes = tuple((field, reason, told(message)) for field, reason, message in answer.causes)
    return answer._replace(message=told(answer.message), causes=causes)


def test_definitions_and_objects_are_answered_as_by_the_real_one(http: Http) -> None:
    ours = {answer.label: compared(answer) for answer in all_asked(sender(http))}
    theirs = {answer.label: compared(answer) for answer in recorded_answers()}
    assert [*ours] == [*theirs]
    for label, wanted in theirs.items():
        assert ours[label] == wanted, label


def test_there_is_enough_of_all_sorts() -> None:
    answers = recorded_answers()
    definitions = [it for it in answers if it.label.endswith("define")]
    assert len(definitions) > 200
    assert len([it for it in definitions if it.code == 422]) > 120
    objects = [it for it in answers if not it.label.endswith("define")]
    assert len([it for it in objects if it.code == 422]) > 70
    assert len([it for it in objects if it.code in (200, 201)]) > 70


def test_the_recorded_answers_are_those_of_the_real_one(tmp_path: Path) -> None:
    require_program("etcd")
    require_program("kube-apiserver")
    assert asked_of_the_real(tmp_path) == recorded_answers()
