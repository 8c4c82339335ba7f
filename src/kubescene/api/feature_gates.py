"""Feature gates of kube-apiserver and kube-controller-manager that a world can turn on.

They have the names and defaults of v1.36. Those of kube-scheduler are part of its configuration.
"""

from collections.abc import Iterable

from kubescene.errors import ConfigurationError

MAX_UNAVAILABLE_STATEFUL_SET = "MaxUnavailableStatefulSet"
"""``maxUnavailable`` of a StatefulSet's rolling update. Off, the field is dropped."""

OFF_BY_DEFAULT = frozenset({MAX_UNAVAILABLE_STATEFUL_SET})


def check_gates(gates: Iterable[str]) -> None:
    """Raises `ConfigurationError` for a gate that cannot be turned on here."""
    for gate in gates:
        if gate not in OFF_BY_DEFAULT:
            known = ", ".join(sorted(OFF_BY_DEFAULT))
            raise ConfigurationError(
                f"the feature gate {gate!r} cannot be turned on; known: {known}"
            )
