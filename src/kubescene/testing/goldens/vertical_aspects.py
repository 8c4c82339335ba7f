"""What is compared in recordings of the vertical pod autoscaler."""

from enum import StrEnum


class VerticalAspect(StrEnum):
    """What can differ, from coarse to fine."""

    REPLAYED = "replayed"
    REJECTED = "rejected samples"
    OOM_REJECTED = "rejected kills"
    AGGREGATES = "aggregates"
    CHECKPOINTS = "checkpoints"
    CONTAINERS = "recommended containers"
    HISTORY = "history"
    PERCENTILES = "percentiles"
    ESTIMATES = "estimates"
    RECOMMENDATION = "recommendation"
    CONDITIONS = "conditions"
    CAPPED = "capped"
    NOTES = "capping notes"
    PRIORITY = "priority"
    ACCEPTED = "accepted"
    EVICTED = "evicted"
    RESIZED = "resized"
    EVENTS = "events"
    RESOURCES = "resources"
    PATCHES = "patches"
