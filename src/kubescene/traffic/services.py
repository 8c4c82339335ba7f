"""What a spec says about requests and routing, in the units of the kernels."""

from kubescene.clock import Streams
from kubescene.traffic.connections import LeastConnections
from kubescene.traffic.kernels import NEVER, Service
from kubescene.traffic.routing import RandomRouting, RoundRobin, Router, Routing
from kubescene.traffic.spec import Demand, TrafficSpec


def service_of(spec: TrafficSpec) -> Service:
    """What requests need."""
    request = spec.request
    return Service(
        demand=request.cpu_time * 1000,
        timeout=NEVER if request.timeout < 0 else int(request.timeout),
        drawn=request.demand is Demand.EXPONENTIAL,
        limit=spec.replicas.limit,
        ceiling=int(spec.replicas.request_cpu),
    )


def router_of(spec: TrafficSpec, streams: Streams) -> Router:
    """Who gets them."""
    if spec.routing is Routing.RANDOM:
        return RandomRouting(streams.stream("traffic/routing"))
    if spec.routing is Routing.LEAST_CONNECTIONS:
        return LeastConnections(service_of(spec), int(spec.request.io_time))
    return RoundRobin()
