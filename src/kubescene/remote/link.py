"""The way of a write to the server: announced, sent, and waited for.

A write is announced while it is under way. The admission webhook asks for that: it lets pass what
Kubescene is just doing, and nothing else that comes in the same name.
"""

from collections.abc import Callable
from typing import NamedTuple

from kubescene.api.records import Record
from kubescene.api.scheme import GroupResource
from kubescene.client.http import HttpClient
from kubescene.errors import ApiError
from kubescene.remote.mirror import Mirror


class Announcement(NamedTuple):
    """A write that is under way. ``verb`` is create, update, patch, bind, evict or delete."""

    verb: str
    resource: GroupResource
    namespace: str
    name: str
    subresource: str = ""


class Link:
    """One client and the mirror that hears what it does."""

    def __init__(self, client: HttpClient, mirror: Mirror) -> None:
        self.client = client
        self.mirror = mirror
        self.under_way: Announcement | None = None
        """Read by the thread of the webhook."""

    def send(self, announcement: Announcement, ask: Callable[[], Record]) -> Record:
        """Make a write and wait until the mirror shows it; what the server answered.

        After a refusal the mirror has caught up with what may have been the reason.
        """
        try:
            record = self.only_send(announcement, ask)
        except ApiError:
            self.mirror.hear()
            raise
        self.mirror.wait_for(record)
        return record

    def only_send(self, announcement: Announcement, ask: Callable[[], Record]) -> Record:
        """The same without waiting."""
        self.under_way = announcement
        try:
            record = ask()
        finally:
            self.under_way = None
        self.mirror.intruders.answered(announcement.verb, record)
        return record
