"""All that is wrong with the fields of a configuration, in the order in which it was found."""

from collections.abc import Iterable, Sequence

from kubescene.api.selectors import aggregate
from kubescene.api.validation.field_errors import ErrorList, ErrorType, FieldError, quote
from kubescene.errors import SchedulerConfigurationError


class Faults(ErrorList):
    """Field errors, and texts of others that begin with their path."""

    def texts(self, texts: Iterable[str]) -> None:
        """Faults that somebody else has put into words already: ``PATH: what is wrong``."""
        for text in texts:
            path, _, rest = text.partition(": ")
            self.append(_WordedError(ErrorType.INVALID, path, None, rest))

    def raise_if_any(self, prefix: str = "", below: str = "") -> None:
        """Refuse the configuration with everything that is wrong with it.

        ``prefix`` opens the text; ``below`` is where the paths begin.
        """
        if self:
            path = ".".join(filter(None, (below, self[0].field)))
            raise SchedulerConfigurationError(prefix + aggregated(self), path)


class _WordedError(FieldError, frozen=True):
    @property
    def body(self) -> str:
        return self.detail


def aggregated(errors: Sequence[FieldError]) -> str:
    """One text for all of them, each once."""
    return aggregate(list(dict.fromkeys(error.message for error in errors)))


_SCHEME = "pkg/scheduler/apis/config/scheme/scheme.go:29"


def not_registered(kind: str, api_version: str) -> str:
    return (
        f"no kind {quote(kind)} is registered for version {quote(api_version)} "
        f'in scheme "{_SCHEME}"'
    )
