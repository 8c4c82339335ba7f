"""``/simulator/v1/schedulerconfiguration``: the scheduler's configuration, seen and changed."""

from collections.abc import Iterator

from kubescene.api.text.reading import Duplicate
from kubescene.apiserver.bodies import read_command
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.kubernetes.writes import as_object
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, json_response
from kubescene.apiserver.simulator.worlds import PREFIX
from kubescene.apiserver.table import Route
from kubescene.errors import (
    ConfigurationError,
    ForbiddenError,
    InvalidError,
    SchedulerConfigurationError,
    StatusCause,
)
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration import describe, read_configuration
from kubescene.scheduler.configuration.schema import GROUP, KIND
from kubescene.types import JsonObject

MAX_SIZE = 3 * 1024 * 1024


class SchedulerConfigurationPage:
    """A new configuration takes effect as a whole, or not at all; with ``?dryRun=All`` not at all:
    the answer is what it would be with all its defaults.

    Extenders make the server call addresses and read files, so whoever may post a configuration may
    not name new ones unless ``allow_extenders``.
    """

    def __init__(self, engine: EngineThread, *, allow_extenders: bool = False) -> None:
        self._engine = engine
        self._allow_extenders = allow_extenders

    def routes(self) -> Iterator[Route]:
        pattern = f"{PREFIX}schedulerconfiguration"
        yield Route("GET", pattern, self.get)
        yield Route("POST", pattern, self.post, engine=True)

    async def get(self, request: Request) -> Response:
        del request
        return json_response({**describe(self._engine.cluster.own_options.scheduler)})

    async def post(self, request: Request) -> Response:
        body = await read_command(request, MAX_SIZE)
        before = self._engine.cluster.own_options.scheduler
        duplicates = [Duplicate(key) for key in body.duplicates]
        document = as_object(body.value)
        self._check_extenders(before, document)
        try:
            options = read_configuration(document, before, source=KIND, duplicates=duplicates)
            if request.is_dry_run:
                return json_response({**describe(options)})
            await self._engine.submit(lambda: self._engine.configure_scheduler(options))
        except SchedulerConfigurationError as error:
            raise refusal(error) from None
        except ConfigurationError as error:
            raise InvalidError(str(error), kind=KIND, group=GROUP) from None
        return json_response({**describe(options)}, 202)

    def _check_extenders(self, before: SchedulerOptions, document: JsonObject) -> None:
        """Before anything is read: a configuration may also name files of the server's."""
        known = (before.configuration or {}).get("extenders")
        named = document.get("extenders")
        if self._allow_extenders or not named or named == known:
            return
        raise ForbiddenError(
            "extenders: this server calls only the extenders that it was started with; "
            "start it with --allow-extenders to name others here",
            kind=KIND,
            group=GROUP,
        )


def refusal(error: SchedulerConfigurationError) -> InvalidError:
    """A refused configuration as a Kubernetes ``Status``, the field among its causes."""
    cause = StatusCause("FieldValueInvalid", error.text, error.path)
    return InvalidError(str(error), kind=KIND, group=GROUP, causes=[cause])
