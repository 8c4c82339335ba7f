"""Admission of edits: what is wrong with one is said to whoever makes it."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from kubescene.api.kinds import SCENARIO
from kubescene.api.scheme import GroupResource
from kubescene.api.validation import raise_if_invalid
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC
from kubescene.errors import ScenarioError
from kubescene.live.runs import LiveRun
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.runs.examination import expectation_faults
from kubescene.scenario.edits import UNDER_WAY, complaints_about, passed, spec_of
from kubescene.scenario.expectations import expectations_of
from kubescene.scenario.fields.table import EXPECTATIONS
from kubescene.scenario.phases import ScenarioPhase
from kubescene.scenario.spec import parse_spec
from kubescene.scenario.validation.faults import misfits
from kubescene.types import JsonObject

Playing: TypeAlias = Callable[[str], LiveRun | None]
"""The run of a scenario that is under way, by its uid."""


class ScenarioEdits:
    """An admission plugin that looks at changes of Scenarios only."""

    name = "ScenarioEdits"
    reads: Sequence[GroupResource] = ()
    is_quiet = True

    def __init__(self, playing: Playing | None) -> None:
        self._playing = playing

    def __deepcopy__(self, memo: dict[int, Any]) -> "ScenarioEdits":
        """In a copy of the world nobody plays what is created there."""
        twin = memo[id(self)] = ScenarioEdits(None)
        return twin

    def admit(self, request: AdmissionRequest) -> JsonObject:
        return request.obj

    def validate(self, request: AdmissionRequest) -> None:
        if request.resource_type.gvk != SCENARIO or request.subresource:
            return
        if request.verb in ("create", "update"):
            self._check_expectations(request)
        if request.verb == "update" and request.old is not None and self._playing is not None:
            old, new = spec_of(request.old), spec_of(request.obj)
            if old != new:
                self._check(request, self._playing, old, new)

    def _check_expectations(self, request: AdmissionRequest) -> None:
        """Refuse expressions that could not be looked at in the end, unless they were there."""
        spec = spec_of(request.obj)
        if not spec.get("expectations") or any(misfits(spec["expectations"], EXPECTATIONS)):
            return
        if request.old is not None and spec == spec_of(request.old):
            return
        errors = ErrorList()
        for fault in expectation_faults(expectations_of(spec)):
            index, field = int(fault.path[2]), str(fault.path[3])
            place = SPEC.child("expectations").index(index).child(field)
            errors.invalid(place, spec["expectations"][index][field], fault.message)
        raise_if_invalid(errors, request.resource_type, request.name)

    def _check(
        self, request: AdmissionRequest, playing: Playing, old: JsonObject, new: JsonObject
    ) -> None:
        errors = ErrorList()
        phase = phase_of(request.old)
        run = playing(str((request.old or {})["metadata"].get("uid", "")))
        if phase.is_final:
            errors.forbidden(SPEC, f"the scenario is {phase}: create another one to play more")
        elif run is not None and phase in UNDER_WAY:
            try:
                after = parse_spec(request.obj)
            except ScenarioError as error:
                errors.forbidden(SPEC, f"the scenario is {phase} and would fail: {error}")
            else:
                started = dict(run.engine.started)  # any thread may ask
                for complaint in complaints_about(old, new, after, started.values()):
                    errors.forbidden(SPEC.child(complaint.field), complaint.why)
                known = {each.id for each in run.scenario.ignored}
                for late in passed(after, run.scenario.step.major, started):
                    if late.id in known:
                        continue
                    request.warn(
                        f"operation {late.id!r} is ignored: its step {late.step} has passed, the "
                        f"scenario is at step {run.scenario.step}"
                    )
        raise_if_invalid(errors, request.resource_type, request.name)


def phase_of(scenario: JsonObject | None) -> ScenarioPhase:
    """What the status says; whatever that is not is ``Unknown``."""
    status = (scenario or {}).get("status")
    value = status.get("phase") if isinstance(status, dict) else ""
    return as_phase(value or "")


def as_phase(value: object) -> ScenarioPhase:
    """A scenario that nobody has looked at yet waits."""
    try:
        return ScenarioPhase(str(value or ScenarioPhase.PENDING))
    except ValueError:
        return ScenarioPhase.UNKNOWN
