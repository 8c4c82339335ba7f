"""When a pod of a Job counts as failed, and when the Job is over: pure functions."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kubescene.clock import SECOND
from kubescene.controllers.builtin.workloads.jobs.indexes import Indexes, parse_indexes
from kubescene.controllers.builtin.workloads.jobs.pods import JobPod
from kubescene.types import JsonObject

FAILURE_TARGET, FAILED = "FailureTarget", "Failed"
SUCCESS_CRITERIA_MET, COMPLETE = "SuccessCriteriaMet", "Complete"
TERMINAL = {FAILURE_TARGET: FAILED, SUCCESS_CRITERIA_MET: COMPLETE}
"""A Job ends in two steps: that it will, and, when none of its pods is left, that it has."""
FAIL_JOB, FAIL_INDEX, IGNORE = "FailJob", "FailIndex", "Ignore"
FIRST_BACK_OFF, LONGEST_BACK_OFF = 10 * SECOND, 600 * SECOND


class PolicyVerdict(NamedTuple):
    """Why a Job will be over: the condition that is written first."""

    type: str
    reason: str
    message: str

    @property
    def is_success(self) -> bool:
        return self.type == SUCCESS_CRITERIA_MET


COMPLETIONS_REACHED = PolicyVerdict(
    SUCCESS_CRITERIA_MET, "CompletionsReached", "Reached expected number of succeeded pods"
)
BACKOFF_LIMIT_EXCEEDED = PolicyVerdict(
    FAILURE_TARGET, "BackoffLimitExceeded", "Job has reached the specified backoff limit"
)
DEADLINE_EXCEEDED = PolicyVerdict(
    FAILURE_TARGET, "DeadlineExceeded", "Job was active longer than specified deadline"
)
TOO_MANY_FAILED_INDEXES = PolicyVerdict(
    FAILURE_TARGET,
    "MaxFailedIndexesExceeded",
    "Job has exceeded the specified maximal number of failed indexes",
)
FAILED_INDEXES = PolicyVerdict(FAILURE_TARGET, "FailedIndexes", "Job has failed indexes")


def is_finished(status: JsonObject) -> bool:
    return any(
        each.get("type", "") in (COMPLETE, FAILED) and each.get("status", "") == "True"
        for each in status.get("conditions") or ()
    )


def verdict_of(status: JsonObject) -> PolicyVerdict | None:
    """The verdict that a status has, if there is one."""
    for each in status.get("conditions") or ():
        if each.get("type", "") in TERMINAL and each.get("status", "") == "True":
            return PolicyVerdict(
                each.get("type", ""), each.get("reason", ""), each.get("message", "")
            )
    return None


def replaces_failed_only(spec: JsonObject) -> bool:
    return spec.get("podReplacementPolicy") == FAILED


def is_failed(pod: JobPod, spec: JsonObject) -> bool:
    """Whether a pod has failed; one that goes has, unless replacements wait for its end."""
    if pod.phase == FAILED:
        return True
    return pod.deleting and pod.phase != "Succeeded" and not replaces_failed_only(spec)


class PolicyMatch(NamedTuple):
    action: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        return self.action != IGNORE


def match_failure_policy(spec: JsonObject, pod: JobPod) -> PolicyMatch:
    """The first rule of the policy that fits a failed pod; without one it counts."""
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    for at, rule in enumerate(rules):
        action = rule["action"]
        where = f"matching {action} rule at index {at}"
        if rule.get("onExitCodes"):
            found = exit_that_matches(pod, rule["onExitCodes"])
            if found is not None:
                container, code = found
                what = f"Container {container} for pod {pod.key.namespace}/{pod.key.name}"
                return PolicyMatch(action, f"{what} failed with exit code {code} {where}")
        elif condition := condition_that_matches(pod, rule.get("onPodConditions") or ()):
            what = f"Pod {pod.key.namespace}/{pod.key.name} has condition {condition}"
            return PolicyMatch(action, f"{what} {where}")
    return PolicyMatch()


def exit_that_matches(pod: JobPod, wanted: JsonObject) -> tuple[str, int] | None:
    container, values = wanted.get("containerName"), wanted.get("values") or ()
    is_in = wanted["operator"] == "In"
    for name, code in pod.exits:
        if code and container in (None, name) and (code in values) == is_in:
            return name, code
    return None


def condition_that_matches(pod: JobPod, patterns: Iterable[JsonObject]) -> str:
    for pattern in patterns:
        if (pattern.get("type", ""), pattern.get("status", "True")) in pod.conditions:
            return str(pattern.get("type", ""))
    return ""


def match_success_policy(spec: JsonObject, succeeded: Indexes) -> PolicyVerdict | None:
    """Whether the indexes that have succeeded are enough."""
    completions = int(spec.get("completions") or 0)
    for at, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
        if indexes is not None:
            wanted = parse_indexes(indexes, completions)
            reached = wanted.common(succeeded)
            is_met = reached >= count if count is not None else reached == len(wanted)
        else:
            is_met = count is not None and len(succeeded) >= count
        if is_met and len(succeeded):
            return PolicyVerdict(
                SUCCESS_CRITERIA_MET, "SuccessPolicy", f"Matched rules at index {at}"
            )
    return None


class JobBackOff(NamedTuple):
    """Failures in a row since the last success, and when the newest was."""

    failures: int = 0
    last_failure: int | None = None

    def __deepcopy__(self, memo: object) -> "JobBackOff":
        return self  # nothing of it ever changes

    def after(self, succeeded: Sequence[JobPod], failed: Sequence[JobPod]) -> "JobBackOff":
        """With pods that have ended since."""
        if not failed:
            return JobBackOff() if succeeded else self
        last_success = max((each.ended_at for each in succeeded), default=None)
        if last_success is None:
            return JobBackOff(self.failures + len(failed), max(each.ended_at for each in failed))
        later = [each.ended_at for each in failed if each.ended_at > last_success]
        return JobBackOff(len(later), max(later, default=None))

    def remaining(self, now: int) -> int:
        """Nanoseconds until the next pod may be made."""
        if not self.failures or self.last_failure is None:
            return 0
        wait = min(FIRST_BACK_OFF << min(self.failures - 1, 30), LONGEST_BACK_OFF)
        return max(self.last_failure + wait - now, 0)


def remaining_for_index(pod: JobPod | None, now: int) -> int:
    """The same for the index of a pod that failed, which is to be replaced."""
    if pod is None:
        return 0
    failures = pod.failures + pod.ignored_failures + 1
    return JobBackOff(failures, pod.ended_at).remaining(now)


def exceeds_restarts(spec: JsonObject, restarts: int) -> bool:
    """Whether containers were restarted in place as often as pods may fail."""
    if spec["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    limit = int(spec.get("backoffLimit", 6))
    return restarts >= limit if limit else restarts > 0


def condition(verdict: PolicyVerdict, now: str, *, final: bool = False) -> dict[str, Any]:
    return {
        "type": TERMINAL[verdict.type] if final else verdict.type,
        "status": "True",
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": verdict.reason,
        "message": verdict.message,
    }
