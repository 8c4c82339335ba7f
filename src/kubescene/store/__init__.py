"""One history of every object: records, revisions, indexes and watches.

The store knows bytes, keys and revisions. What an object must look like, who may write it and what
happens on deletion is the registry's business. One thread owns every write; readers of any
thread see immutable records.
"""

from kubescene.store.journals import Journal
from kubescene.store.store import Store
from kubescene.store.subscriptions import Subscriber, Subscription
from kubescene.store.watch import Watch, WatchOverflowError

__all__ = [
    "Journal",
    "Store",
    "Subscriber",
    "Subscription",
    "Watch",
    "WatchOverflowError",
]
