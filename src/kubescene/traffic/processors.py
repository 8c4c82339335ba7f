"""Which loop serves which requests."""

from kubescene.traffic.kernels import Processor, Service
from kubescene.traffic.least_left_first import LeastLeftFirst
from kubescene.traffic.oldest_first import OldestFirst


def processor_of(service: Service, capacity: int, now: int) -> Processor:
    """The CPU of a replica for such requests."""
    kind = OldestFirst if service.in_order else LeastLeftFirst
    return kind(service, capacity, now)
