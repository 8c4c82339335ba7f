"""What a server is asked about a pod."""

from types import TracebackType
from typing import Self

import msgspec

from kubescene.actors import Actor
from kubescene.api.kinds import SCENARIO
from kubescene.client.http import HttpClient
from kubescene.errors import ConfigurationError, ConflictError, NotFoundError
from kubescene.remedies import Remedy
from kubescene.results.explaining import ExplainedAttempt

ACTOR = Actor("kubescene-explain")
SIMULATOR = "/simulator/v1"
NOT_KEPT = (
    "has played no scenario: it keeps explanations of scenarios only; of its own world, the "
    "conditions and events of pods tell (kubectl describe pod)"
)


class ServerAnswer(msgspec.Struct):
    """What the page ``explain`` answers."""

    attempts: list[ExplainedAttempt]
    known: bool


class Proposed(msgspec.Struct):
    """What the page ``remedies`` answers."""

    remedies: list[Remedy]
    complete: bool


class RemoteWorld:
    """One server."""

    def __init__(self, url: str) -> None:
        self._client = HttpClient(url, ACTOR)
        self._url = url.rstrip("/")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def attempts(self, pod: str, scenario: str) -> tuple[list[ExplainedAttempt], bool]:
        """The attempts at a pod in a scenario, and whether the pod is known at all."""
        name = scenario or only_scenario(self._client, self._url, NOT_KEPT)
        try:
            page = self._client.read_page(f"{SIMULATOR}/scenarios/{name}/explain", pod=pod)
        except NotFoundError as error:
            raise ConfigurationError(f"{self._url}: {error.message}") from None
        told = msgspec.json.decode(page, type=ServerAnswer)
        return told.attempts, told.known

    def remedies(self, pod: str) -> Proposed:
        """What it would take to place a pod, as the world of the server stands now."""
        try:
            page = self._client.read_page(f"{SIMULATOR}/remedies", pod=pod)
        except (NotFoundError, ConflictError) as error:
            raise ConfigurationError(f"{self._url}: {error.message}") from None
        return msgspec.json.decode(page, type=Proposed)


def only_scenario(client: HttpClient, url: str, without: str) -> str:
    """The name of a server's one scenario; ``without`` says what it means to have none."""
    names = sorted(each["metadata"]["name"] for each in client.list(SCENARIO))
    if not names:
        raise ConfigurationError(f"{url} {without}")
    if len(names) > 1:
        listed = ", ".join(names)
        raise ConfigurationError(f"{url} has several: name one by --scenario ({listed})")
    return str(names[0])
