"""What a Scenario's status says of a program outside: how it was judged, and what that is worth.

Equal runs are promised only where nothing was guessed: a program that says itself when a loop is
over (``parked``), and a scheduler that stands still in its park pods, is watched by the kernel's
accounts meanwhile, and has the settings that take its timers and races away.
"""

from kubescene.scenario.outside import OutsideController, OutsideKind, OutsideStatus

PARKED = "parked"
PARK_POD = "park-pod"
STILL = "still"


def judged(
    declared: OutsideController, by: tuple[str, ...], *, settings_known: bool, failed: bool = False
) -> OutsideStatus:
    """``by`` are the signs that were gone by; ``settings_known``: somebody has looked at them.

    ``failed``: the scenario ended because of it.
    """
    doubt = doubt_about(declared, by, settings_known=settings_known)
    if failed and by:
        doubt = "the scenario failed because of it: when it did depends on the machine"
    signs = (*by, *waiters_of(declared)) if by else ()
    return OutsideStatus(declared.name, str(declared.kind), signs, not doubt, doubt)


def waiters_of(declared: OutsideController) -> list[str]:
    """The waiter that had to agree, as a sign."""
    spec = declared.waiter
    return [] if spec is None else [f"waiter {spec.name or 'conditions'}"]


def doubt_about(declared: OutsideController, by: tuple[str, ...], *, settings_known: bool) -> str:
    """Why another run may differ; empty if it will not."""
    if not by:
        return "it never had a turn"
    if declared.kind is OutsideKind.BAG:
        return "its workers race: the state that they end in is alike, not the way there"
    if PARKED in by and declared.kind is OutsideKind.OPERATOR:
        return ""
    if declared.kind is OutsideKind.OPERATOR:
        return "the end of a loop was judged from outside: let it say so itself (parked)"
    if PARK_POD not in by or STILL not in by:
        return "whether it had read what it was sent was judged by silence: start it with --outside"
    if declared.unchecked:
        return "settings: Unchecked, so its timers and races may show"
    return "" if settings_known else "its settings are not known: start it with --outside"
