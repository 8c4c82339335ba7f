"""``pods/NAME/log``: what a container has written, also as it goes on.

Refusals are those of kube-apiserver and of the kubelet behind it. Lines come from the behaviour of
pods (`controllers.kubelet.logs`); a container of which nothing is said writes nothing.
"""

from collections import deque

from msgspec import Struct

from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.kubernetes.wakeups import OpenStreams, Sleeper
from kubescene.apiserver.requests import Request, RequestTarget, Send
from kubescene.apiserver.responses import TEXT, Response
from kubescene.clock import SECOND, format_time, parse_time
from kubescene.controllers.kubelet.behaviour import behaviour_of
from kubescene.controllers.kubelet.logs import (
    MOST_LINES,
    LogEntry,
    LoggedRun,
    LogLine,
    container_status,
    run_of,
)
from kubescene.errors import BadRequestError, InvalidError, StatusCause
from kubescene.types import JsonObject

LOOK_S = 0.5
"""How often somebody who follows a log hears of more."""
KINDS = ("initContainers", "containers", "ephemeralContainers")
PULLING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}
_HEADERS = [(b"content-type", TEXT.encode()), (b"cache-control", b"no-cache, private")]


class LogOptions(Struct, frozen=True):
    """``PodLogOptions``."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    since: int = 0
    timestamps: bool = False
    tail: int | None = None
    limit: int | None = None

    def text(self, line: LogLine) -> bytes:
        stamp = f"{format_time(line.at)[:-1]}.{line.at % SECOND:09}Z " if self.timestamps else ""
        return f"{stamp}{line.text}\n".encode()


class PodLogs:
    """Reads the logs of the pods of one world. On the event loop."""

    def __init__(self, engine: EngineThread) -> None:
        self._engine = engine
        self._streams = OpenStreams()
        self.close = self._streams.close

    async def serve(self, target: RequestTarget, request: Request) -> Response | None:
        now = self._engine.cluster.clock.now()
        options = read_options(request, target.name, now)
        registry = self._engine.cluster.registry
        pod = registry.record(target.resource_type, target.namespace, target.name).decode()
        container = container_of(pod, options.container)
        if not (pod.get("spec") or {}).get("nodeName"):
            return Response(b"", 204, TEXT)
        run = run_to_show(pod, container, previous=options.previous)
        if options.follow and run.ended is None:
            sleeper = self._streams.sleeper()
            follower = _Follower(self, target, options, container, run)
            await self._streams.run(request, sleeper, follower.send(request.send, sleeper))
            return None
        lines = run.written(self.entries(pod, container), options.since, now)
        newest = deque(lines, MOST_LINES if options.tail is None else options.tail)
        text = b"".join(map(options.text, newest))
        return Response(text[: options.limit], media_type=TEXT)

    def entries(self, pod: JsonObject, container: str) -> tuple[LogEntry, ...]:
        """What the container writes; nothing, if its annotations cannot be read."""
        metadata = pod["metadata"]
        try:
            workloads = self._engine.cluster.options.workloads
            behaviour = behaviour_of(workloads, metadata, metadata["namespace"])
        except ValueError:
            return ()
        if behaviour is None:
            return ()
        inits = (pod.get("spec") or {}).get("initContainers") or ()
        is_init = any(each.get("name") == container for each in inits)
        return behaviour.of(container, init=is_init).logs or ()

    def look(self, target: RequestTarget) -> tuple[JsonObject | None, int]:
        """The pod as it is now, if it is there, and what time that is."""
        cluster = self._engine.cluster
        group_resource = target.resource_type.group_resource
        record = cluster.registry.store.get(group_resource, target.namespace, target.name)
        return (None if record is None else record.decode()), cluster.clock.now()


class _Follower:
    """Somebody who reads the log of one run while it is written."""

    def __init__(
        self,
        logs: PodLogs,
        target: RequestTarget,
        options: LogOptions,
        container: str,
        run: LoggedRun,
    ) -> None:
        self._logs = logs
        self._target = target
        self._options = options
        self._container = container
        self._began = run.began
        self._since = options.since
        self._tail = MOST_LINES if options.tail is None else options.tail
        self._left = options.limit

    async def send(self, send: Send, sleeper: Sleeper) -> None:
        """Until the run is over, all that was asked for is sent, or nobody reads any more."""
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        goes_on = True
        while goes_on and self._left != 0:
            data, goes_on = self._more()
            await send({"type": "http.response.body", "body": data, "more_body": True})
            if goes_on and self._left != 0:
                await sleeper.sleep(LOOK_S)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _more(self) -> tuple[bytes, bool]:
        """What has come, and whether more may come."""
        pod, now = self._logs.look(self._target)
        status = None if pod is None else container_status(pod, self._container)
        known = [] if status is None else [run_of(status), run_of(status, previous=True)]
        run = next((each for each in known if each and each.began == self._began), None)
        if pod is None or run is None:
            return b"", False
        lines = run.written(self._logs.entries(pod, self._container), self._since, now)
        data = b"".join(map(self._options.text, deque(lines, self._tail)))
        self._since, self._tail = max(self._since, now + 1), MOST_LINES
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        return data, run.ended is None


def read_options(request: Request, name: str, now: int) -> LogOptions:
    """What is asked of a log; 422 for what kube-apiserver refuses."""
    tail, limit = request.number("tailLines"), request.number("limitBytes")
    seconds, time = request.number("sinceSeconds"), request.query.get("sinceTime", "")
    faults: list[StatusCause] = []
    if tail is not None and tail < 0:
        faults.append(_invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        faults.append(_invalid("limitBytes", limit, "must be greater than 0"))
    if seconds is not None and time:
        told = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
        faults.append(StatusCause("FieldValueForbidden", told, "[]"))
    elif seconds is not None and seconds < 1:
        faults.append(_invalid("sinceSeconds", seconds, "must be greater than 0"))
    if faults:
        raise _refusal(name, faults)
    try:
        since = parse_time(time) if time else 0
    except ValueError as error:
        raise BadRequestError(f"sinceTime: {error}") from None
    return LogOptions(
        container=request.query.get("container", ""),
        follow=request.flag("follow"),
        previous=request.flag("previous"),
        since=since if seconds is None else now - seconds * SECOND,
        timestamps=request.flag("timestamps"),
        tail=tail,
        limit=limit,
    )


def _invalid(field: str, value: int, told: str) -> StatusCause:
    return StatusCause("FieldValueInvalid", f"Invalid value: {value}: {told}", field)


def _refusal(name: str, faults: list[StatusCause]) -> InvalidError:
    told = [f"{each.field}: {each.message}" for each in faults]
    text = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    return InvalidError(
        f'PodLogOptions "{name}" is invalid: {text}',
        name=name,
        kind="PodLogOptions",
        causes=tuple(faults),
    )


def container_of(pod: JsonObject, named: str) -> str:
    """The container that is meant; 400 if that is not clear."""
    spec, name = pod.get("spec") or {}, pod["metadata"]["name"]
    names = [str(each.get("name")) for kind in KINDS for each in spec.get(kind) or ()]
    if named:
        if named not in names:
            raise BadRequestError(f"container {named} is not valid for pod {name}")
        return named
    mains: list[JsonObject] = spec.get("containers") or []
    if len(mains) == 1:
        return str(mains[0].get("name"))
    raise BadRequestError(
        f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
    )


def run_to_show(pod: JsonObject, container: str, *, previous: bool) -> LoggedRun:
    """The run whose log is asked for; 400 in the kubelet's words if there is none."""
    where = f'container "{container}" in pod "{pod["metadata"]["name"]}"'
    status = container_status(pod, container)
    if status is None:
        raise BadRequestError(f"{where} is not available")
    run = run_of(status, previous=previous)
    if run is not None:
        return run
    if previous:
        raise BadRequestError(f"previous terminated {where} not found")
    reason = ((status.get("state") or {}).get("waiting") or {}).get("reason")
    if not reason:
        raise BadRequestError(f"{where} is waiting to start - no logs yet")
    raise BadRequestError(f"{where} is waiting to start: {PULLING.get(reason, reason)}")
