"""The search for devices: which ones to give to the claims of a pod on one node.

One claim after the other, each request of it, each device of a request: the first device that can
be had is taken and the search goes on; where it gets stuck, the last device is given back and the
next one tried. The first full solution is the answer. Pools, slices and devices are tried in the
order in which `pools` lists them, so the order decides which device is chosen.

Whoever gives up has to say why: `Refused` concerns this node only, `Failed` ends the pod's attempt.
A search that takes more than `MOST_STEPS` fails as it would in kube-scheduler, where it has ten
seconds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kubescene.api.quantity import Quantity
from kubescene.scheduler.devices import capacity
from kubescene.scheduler.devices.allocated import Allocated
from kubescene.scheduler.devices.capacity import CounterBook
from kubescene.scheduler.devices.classes import DeviceClass
from kubescene.scheduler.devices.constraints import Constraint, make_constraint
from kubescene.scheduler.devices.pools import Pool
from kubescene.scheduler.devices.requests import EXACT_COUNT, ClaimSpec, DeviceRequest
from kubescene.scheduler.devices.selectors import DeviceSelectorError, selects
from kubescene.scheduler.devices.slices import Device, DeviceId
from kubescene.types import ReadOnlyObject

MOST_RESULTS = 32
"""How many devices one claim can hold."""
MOST_STEPS = 200_000
"""How many devices may be looked at for one node."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A device for a request; of a device that is shared, ``consumed`` is what is taken of it."""

    request: DeviceRequest
    device: Device
    consumed: Mapping[str, Quantity] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Granted:
    """The devices of each claim, and which alternative each of its requests came to."""

    claims: tuple[tuple[Taken, ...], ...]
    chosen: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """Not on this node."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Something is wrong that another node would not mend.

    ``claim`` is the position of the claim in question, or -1; its name belongs before the text.
    """

    claim: int
    text: str


Outcome = Granted | Refused | Failed

CANNOT_ALLOCATE = Refused("cannot allocate all claims")
INVALID_POOLS = Refused("invalid resource pools were encountered")


def allocate(
    claims: Sequence[ClaimSpec],
    pools: Sequence[Pool],
    node: str,
    labels: Mapping[str, str],
    *,
    classes: Mapping[str, DeviceClass],
    allocated: Allocated,
) -> Outcome:
    """Find devices for all of the claims on a node, or say why there are none."""
    search = _Search(claims, pools, node, labels, classes, allocated)
    try:
        search.prepare()
        if search.run():
            return search.granted()
    except _SearchError as failure:
        return failure.outcome
    return INVALID_POOLS if any(each.is_invalid for each in pools) else CANNOT_ALLOCATE


class _SearchError(Exception):
    def __init__(self, outcome: Failed) -> None:
        self.outcome = outcome


class _TooManyDevicesError(Exception):
    """The claim would hold more devices than it can; alternatives may need fewer."""


@dataclass(slots=True)
class _Option:
    """A request on this node: how many devices, and which ones if it wants all there are."""

    request: DeviceRequest
    device_class: DeviceClass
    count: int = 0
    every: tuple["_Candidate", ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    device: Device
    pool: Pool


@dataclass(slots=True)
class _Step:
    """What has to be undone when a device is given back."""

    claim: int
    request: DeviceRequest
    candidate: _Candidate
    counted: bool = False
    constraints: int = 0
    marked: bool = False
    shared: Mapping[str, Quantity] | None = None
    shared_before: bool = False


class _Search:
    def __init__(
        self,
        claims: Sequence[ClaimSpec],
        pools: Sequence[Pool],
        node: str,
        labels: Mapping[str, str],
        classes: Mapping[str, DeviceClass],
        allocated: Allocated,
    ) -> None:
        self._claims = claims
        self._pools = pools
        self._node = node
        self._labels = labels
        self._classes = classes
        self._allocated = allocated
        self._candidates = [*_candidates(each for each in pools if each.is_usable)]
        self._options: list[list[list[_Option]]] = []
        self._constraints: list[list[Constraint]] = []
        self._taken: list[list[Taken]] = [[] for _ in claims]
        self._chosen: list[list[int]] = [[0] * len(each.demands) for each in claims]
        self._held: dict[DeviceId, list[int]] = {}
        self._shares: dict[DeviceId, dict[str, int]] = {}
        self._counters = CounterBook(allocated)
        self._steps = 0

    # -- before the search -----------------------------------------------------------------

    def prepare(self) -> None:
        """Look at every request once: classes, numbers, limits."""
        for position, claim in enumerate(self._claims):
            options = [
                [self._option(position, request) for request in demand.alternatives]
                for demand in claim.demands
            ]
            least = sum(min((each.count for each in listed), default=0) for listed in options)
            if least > MOST_RESULTS:
                text = f"number of requested devices {least} exceeds the claim limit of"
                raise _failure(position, f": {text} {MOST_RESULTS}")
            self._options.append(options)
            self._constraints.append([*self._constraints_of(position, claim)])

    def _option(self, claim: int, request: DeviceRequest) -> _Option:
        where = f", request {request.name}"
        for number, expression in enumerate(request.selectors):
            if not expression:
                text = "CEL expression empty (unsupported selector type?)"
                raise _failure(claim, f"{where}, selector #{number}: {text}")
        device_class = self._classes.get(request.class_name)
        if device_class is None:
            name = request.class_name
            text = f'could not retrieve device class {name}: deviceclass.resource.k8s.io "{name}"'
            raise _failure(claim, f"{where}: {text} not found")
        option = _Option(request, device_class, request.count)
        if request.is_all:
            option.every = tuple(self._every(claim, option))
            option.count = len(option.every)
        elif request.mode != EXACT_COUNT:
            raise _failure(claim, f"{where}: unsupported count mode {request.mode}")
        return option

    def _every(self, claim: int, option: _Option) -> Iterator[_Candidate]:
        """All devices that a request for all of them means."""
        request = option.request
        for pool in self._pools:
            if not pool.is_usable:
                state = "being updated" if pool.is_incomplete else "invalid"
                text = f"asks for all devices, but resource pool {pool.id} is currently {state}"
                raise _failure(claim, f", request {request.name}: {text}")
            for candidate in _candidates([pool]):
                device = candidate.device
                if self._is_selectable(claim, option, candidate) and self._has_room(
                    request, device
                ):
                    yield candidate

    def _constraints_of(self, position: int, claim: ClaimSpec) -> Iterator[Constraint]:
        for number, spec in enumerate(claim.constraints):
            made = make_constraint(spec)
            if made is None:
                text = "empty constraint (unsupported constraint type?)"
                raise _failure(position, f", constraint #{number}: {text}")
            yield made

    # -- the search ------------------------------------------------------------------------

    def run(self) -> bool:
        return self._claim(0)

    def granted(self) -> Granted:
        return Granted(tuple(map(tuple, self._taken)), tuple(map(tuple, self._chosen)))

    def _claim(self, claim: int) -> bool:
        return claim >= len(self._claims) or self._demand(claim, 0)

    def _demand(self, claim: int, position: int) -> bool:
        """A request of a claim, and all that comes after it."""
        demands = self._claims[claim].demands
        if position >= len(demands):
            try:
                return self._claim(claim + 1)
            except _TooManyDevicesError:
                # Other devices for this claim may let the next one use another alternative.
                return False
        options = self._options[claim][position]
        if not demands[position].is_prioritized:
            return self._device(claim, position, options[0], 0, 0)
        return self._first_available(claim, position, options)

    def _first_available(self, claim: int, position: int, options: Sequence[_Option]) -> bool:
        always_too_many = True
        for index, option in enumerate(options):
            try:
                found = self._device(claim, position, option, 0, 0)
            except _TooManyDevicesError:
                continue
            always_too_many = False
            if found:
                self._chosen[claim][position] = index
                return True
        if always_too_many:
            raise _TooManyDevicesError
        return False

    def _device(self, claim: int, position: int, option: _Option, number: int, start: int) -> bool:
        """One more device for a request, and all that comes after it.

        Within a request devices are taken in order, so that no set of them is tried twice.
        """
        self._step()
        if option.request.is_all and not option.every:
            return False
        if number >= option.count:
            return self._demand(claim, position + 1)
        if len(self._taken[claim]) + option.count - number > MOST_RESULTS:
            raise _TooManyDevicesError
        if option.request.is_all:
            step = self._take(claim, option.request, option.every[number], must=True)
            return step is not None and self._went_on(step, position, option, number, 0)
        for at in range(start, len(self._candidates)):
            candidate = self._candidates[at]
            if not self._is_possible(claim, option, candidate):
                continue
            step = self._take(claim, option.request, candidate, must=False)
            if step is not None and self._went_on(step, position, option, number, at + 1):
                return True
        return False

    def _went_on(
        self, step: _Step, position: int, option: _Option, number: int, start: int
    ) -> bool:
        """Whether the search succeeds with this device; if not, the device is given back."""
        try:
            done = self._device(step.claim, position, option, number + 1, start)
        except _TooManyDevicesError:
            self._undo(step)
            raise
        if not done:
            self._undo(step)
        return done

    def _is_possible(self, claim: int, option: _Option, candidate: _Candidate) -> bool:
        self._step()
        request, device = option.request, candidate.device
        if request.is_admin:
            if claim in self._held.get(device.id, ()):
                return False
        elif self._is_in_use(device.id):
            return False
        return self._is_selectable(claim, option, candidate) and self._has_room(request, device)

    def _is_selectable(self, claim: int, option: _Option, candidate: _Candidate) -> bool:
        device, device_class = candidate.device, option.device_class
        for number, expression in enumerate(device_class.selectors):
            try:
                if not selects(expression, device):
                    return False
            except DeviceSelectorError as error:
                text = f"class {device_class.name}: selector #{number}: {error}"
                raise _failure(-1, text) from None
        for number, expression in enumerate(option.request.selectors):
            try:
                if not selects(expression, device):
                    return False
            except DeviceSelectorError as error:
                raise _failure(claim, f": selector #{number}: {error}") from None
        if not candidate.pool.is_per_device:
            return True
        return device.placement.matches(self._node, self._labels)

    def _is_in_use(self, id: DeviceId) -> bool:
        return bool(self._held.get(id)) or self._allocated.is_dedicated(id)

    def _has_room(self, request: DeviceRequest, device: Device) -> bool:
        if not device.capacity and not request.capacity:
            return True
        taken = self._allocated.capacity(device.id) or capacity.NOTHING
        taking = self._shares.get(device.id, capacity.NOTHING)
        return capacity.fits(request.capacity, device, taken, taking)

    # -- taking a device and giving it back ------------------------------------------------

    def _take(
        self, claim: int, request: DeviceRequest, candidate: _Candidate, *, must: bool
    ) -> _Step | None:
        """Take a device if it can be had; ``must`` if no other one would do."""
        device, step = candidate.device, _Step(claim, request, candidate)
        held = self._held.get(device.id, ())
        if request.is_admin:
            if not device.is_shareable and claim in held:
                return None
        elif self._is_in_use(device.id):
            return None
        if device.consumes and not (device.is_shareable and self._is_shared(device.id)):
            if not self._counters.take(candidate.pool, device):
                return None
            step.counted = True
        if _is_tainted(device, request):
            self._undo(step)
            return None
        for constraint in self._constraints[claim]:
            if not constraint.add(request, device):
                self._undo(step)
                if must:
                    text = f"cannot add device {device.id} because a claim constraint would not be"
                    raise _failure(claim, f", request {request.name}: {text} satisfied")
                return None
            step.constraints += 1
        if not self._has_room(request, device):
            self._undo(step)
            return None
        self._hold(step)
        return step

    def _hold(self, step: _Step) -> None:
        device, request = step.candidate.device, step.request
        if device.is_shareable:
            step.shared = capacity.consumed(request.capacity, device)
            step.shared_before = device.id in self._shares
            share = self._shares.setdefault(device.id, {})
            for name, amount in step.shared.items():
                share[name] = share.get(name, 0) + amount.nanos
        else:
            self._held.setdefault(device.id, []).append(step.claim)
            step.marked = True
        self._taken[step.claim].append(Taken(request, device, step.shared))

    def _undo(self, step: _Step) -> None:
        device = step.candidate.device
        if step.marked or step.shared is not None:
            self._taken[step.claim].pop()
        if step.shared is not None:
            self._unshare(step)
        if step.marked:
            self._held[device.id].remove(step.claim)
        for constraint in reversed(self._constraints[step.claim][: step.constraints]):
            constraint.remove(step.request, device)
        if step.counted:
            self._counters.give_back(step.candidate.pool, device)

    def _unshare(self, step: _Step) -> None:
        assert step.shared is not None
        id = step.candidate.device.id
        share = self._shares[id]
        for name, amount in step.shared.items():
            share[name] -= amount.nanos
        if not step.shared_before:
            del self._shares[id]

    def _is_shared(self, id: DeviceId) -> bool:
        return id in self._shares or self._allocated.capacity(id) is not None

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise _failure(-1, f"node {self._node}: timed out trying to allocate devices")


def _candidates(pools: "Iterator[Pool] | Sequence[Pool]") -> Iterator[_Candidate]:
    for pool in pools:
        for device in pool.devices:
            yield _Candidate(device, pool)


def _failure(claim: int, text: str) -> _SearchError:
    return _SearchError(Failed(claim, text))


def _is_tainted(device: Device, request: DeviceRequest) -> bool:
    """Whether a taint that the request does not tolerate keeps the device from being allocated."""
    return any(
        taint.get("effect") in ("NoSchedule", "NoExecute")
        and not any(_tolerates(each, taint) for each in request.tolerations)
        for taint in device.taints
    )


def _tolerates(toleration: ReadOnlyObject, taint: ReadOnlyObject) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(operator == "Exists")
