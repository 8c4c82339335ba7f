"""``replayOperation``: what a history says that others did, at its instants."""

import json
from collections import Counter
from copy import copy, deepcopy
from typing import Any

from kubescene.api.options import OperationOrigin
from kubescene.api.patching.patches import PatchType
from kubescene.api.text.encoding import encode
from kubescene.clock import LAST_INSTANT
from kubescene.durations import go_duration
from kubescene.errors import AlreadyExistsError, ApiError, NotFoundError
from kubescene.histories.survey import survey
from kubescene.histories.table import history_at
from kubescene.scenario.operations.creation import BUNCH, told
from kubescene.scenario.operations.evictions import counted
from kubescene.scenario.operations.intents import Intent, Intents
from kubescene.scenario.operations.undertakings import OperationContext, State
from kubescene.scenario.options import delete_options, write_options
from kubescene.scenario.spec import Operation, OperationKind
from kubescene.types import JsonObject

OPTIONS = write_options({"fieldValidation": "Warn"})
"""What another server has taken may have fields that are not known here."""
TOLD_AT_MOST = 10
"""So many refusals are told one by one."""
DONE = {
    OperationKind.CREATE: "created",
    OperationKind.PATCH: "changed",
    OperationKind.DELETE: "deleted",
}


class Replay:
    """An `Undertaking`. What the world here refuses is told and counted, and does not end it.

    The world takes a course of its own: what was deleted there may be gone here already.
    """

    def __init__(self, operation: Operation, setting: OperationContext) -> None:
        self._operation = operation
        self._setting = setting
        self._begun = setting.clock.now()
        self._played = 0
        self._open()
        self._done: Counter[str] = Counter()
        self._diverged: Counter[str] = Counter()
        self._refused = 0
        self.is_over = self.is_halfway = False

    def __deepcopy__(self, memo: dict[int, Any]) -> "Replay":
        """A copy reads the file again, up to where this one is."""
        other = memo[id(self)] = copy(self)
        other._operation = deepcopy(self._operation, memo)
        other._setting = deepcopy(self._setting, memo)
        other._done, other._diverged = self._done.copy(), self._diverged.copy()
        other._open()
        for _ in range(self._played):
            other._next = next(other._following, None)
        return other

    def _open(self) -> None:
        path = self._operation.file
        assert path is not None
        form = str(self._operation.body.get("format") or "")
        history = history_at(path, form)
        self._offset = self._begun - history.began_at
        self._intents = Intents(history, self._setting.scheme, survey(path, form))
        self._following = iter(self._intents)
        self._next = next(self._following, None)

    @property
    def due(self) -> int | None:
        if self._next is None:
            return None
        return min(max(self._next.at + self._offset, self._begun), LAST_INSTANT)

    def go_on(self) -> None:
        instant, most = self.due, self._played + BUNCH
        if instant is not None and instant <= self._setting.clock.now():
            while self._next is not None and self.due == instant and self._played < most:
                self._carry_out(self._next)
                self._played += 1
                self._next = next(self._following, None)
            self.is_halfway = self.due == instant
        if self._next is None and not self.is_over:
            self.is_over = True
            state = State.INCOMPLETE if self._refused else State.COMPLETED
            self._tell(state, self._summary())

    def tell_unfinished(self) -> None:
        if self._next is not None:
            wait = go_duration((self.due or 0) - self._setting.clock.now())
            self._tell(State.UNFINISHED, f"{self._summary()}; the next change comes in {wait}")

    def _summary(self) -> str:
        parts = [f"{counted(self._played, 'change')} played"]
        parts += [f"{times} {what}" for what, times in sorted(self._done.items())]
        parts += [f"{times} {why}" for why, times in sorted(self._diverged.items())]
        if self._refused:
            parts.append(f"{self._refused} refused")
        left = sorted(self._intents.left_out.items())
        parts += [f"left out: {times} x {why}" for why, times in left]
        return ", ".join(parts)

    def _carry_out(self, intent: Intent) -> None:
        try:
            self._write(intent)
        except AlreadyExistsError:
            self._diverged["there already"] += 1
        except NotFoundError:
            self._diverged["not there"] += 1
        except ApiError as error:
            self._refused += 1
            if self._refused <= TOLD_AT_MOST:
                verb = intent.kind.value.lower()
                named = f"{intent.ref.gvk.kind} {intent.ref.namespace}/{intent.ref.name}"
                self._tell(
                    State.REFUSED, f"{verb} was refused: {error.message} ({intent.place})", named
                )
        else:
            self._done[DONE[intent.kind]] += 1

    def _write(self, intent: Intent) -> None:
        client, ref = self._setting.client, intent.ref
        if intent.kind is OperationKind.CREATE:
            options = told(OPTIONS, self._origin({"object": intent.body}))
            client.create(intent.body, options=options)
        elif intent.kind is OperationKind.PATCH:
            asked = {
                **target(intent),
                "patch": json.dumps(intent.body),
                "patchType": PatchType.MERGE.value,
            }
            if intent.subresource:
                asked["subresource"] = intent.subresource
            client.patch(
                ref,
                intent.body,
                patch_type=PatchType.MERGE,
                subresource=intent.subresource,
                options=told(OPTIONS, self._origin(asked)),
            )
        else:
            asked = {**target(intent), **({"deleteOptions": intent.body} if intent.body else {})}
            client.delete(ref, options=delete_options(intent.body), origin=self._origin(asked))

    def _origin(self, asked: JsonObject) -> OperationOrigin:
        return OperationOrigin(f"{self._operation.id}[{self._played}]", encode(asked))

    def _tell(self, state: State, message: str, subject: str = "") -> None:
        self._setting.tell(self._operation, state, message, subject)


def target(intent: Intent) -> JsonObject:
    ref = intent.ref
    place = {"name": ref.name, **({"namespace": ref.namespace} if ref.namespace else {})}
    return {
        "typeMeta": {"apiVersion": ref.gvk.api_version, "kind": ref.gvk.kind},
        "objectMeta": place,
    }
