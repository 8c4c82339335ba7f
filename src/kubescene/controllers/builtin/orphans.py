"""Objects that nobody manages, and who might adopt them.

Kept up to date from watches, so that a pass never has to list a namespace to find out that there is
nothing to adopt.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kubescene.api.selectors import LabelSelector
from kubescene.controllers.reconcile import Request
from kubescene.store import Change, ChangeType


class Orphans:
    """Orphans of one kind, and the selectors of the controller objects of another."""

    def __init__(self) -> None:
        self._selectors: defaultdict[str, dict[Request, LabelSelector]] = defaultdict(dict)
        self._orphans: defaultdict[str, dict[str, Mapping[str, str]]] = defaultdict(dict)

    def select(self, owner: Request, selector: LabelSelector) -> None:
        """A possible owner adopts what this selector matches."""
        self._selectors[owner.namespace][owner] = selector

    def selector(self, owner: Request) -> LabelSelector:
        return self._selectors[owner.namespace][owner]

    def forget(self, owner: Request) -> None:
        self._selectors[owner.namespace].pop(owner, None)

    def observe(self, change: Change) -> Iterable[Request]:
        """Note a change of an object; who could adopt it now and could not before?"""
        record, previous = change.record, change.previous
        orphans = self._orphans[record.namespace]
        if record.owner or change.type is ChangeType.DELETED:
            orphans.pop(record.name, None)
            return ()
        orphans[record.name] = record.labels
        if previous is not None and not previous.owner and previous.labels == record.labels:
            return ()
        selectors = self._selectors[record.namespace].items()
        return [owner for owner, selector in selectors if selector.matches(record.labels)]

    def adoptable(self, owner: Request) -> list[str]:
        """Names of the orphans that the owner's selector matches."""
        selector = self.selector(owner)
        orphans = self._orphans[owner.namespace].items()
        return [name for name, labels in orphans if selector.matches(labels)]
