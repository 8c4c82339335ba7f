"""Who asks webhooks, and the two resources that say which there are."""

from collections.abc import Sequence
from typing import Protocol

from kubescene.api.consultations import WebhookAnswer, WebhookCall
from kubescene.api.scheme import GroupResource

GROUP = "admissionregistration.k8s.io"
MUTATING = GroupResource(GROUP, "mutatingwebhookconfigurations")
VALIDATING = GroupResource(GROUP, "validatingwebhookconfigurations")
RESOURCES = (MUTATING, VALIDATING)


class WebhookCaller(Protocol):
    """Asks webhooks for those who decide about writes."""

    @property
    def is_open(self) -> bool:
        """Whether anybody is asked now: while a scenario has the world nobody is."""
        ...

    def ask(self, calls: Sequence[WebhookCall]) -> list[WebhookAnswer]:
        """Wait for answers on the thread that decides; others are served meanwhile."""
        ...
