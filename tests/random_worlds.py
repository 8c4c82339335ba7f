"""Whole worlds made by lot: what lives in a cluster beside pods that are placed.

Machines in groups with a cluster autoscaler, workloads of every kind, pods that misbehave, traffic,
pod autoscalers, outages, arrivals, drains. `random_world(seed)` is the same document for the same
seed; it is played to compare two ways of doing the same thing (plain and fast), byte for byte.
`random_scenarios` draws what changes how a pod is placed, and no more.
"""

from typing import Any

from hypothesis import strategies as st

from random_scenarios import API_VERSION, Drawn, Json, Lot

OURS = "kubescene.dev/v1alpha1"
APPS = ("web", "api", "job")
STEPS = 5


def random_world(seed: int) -> Json:
    """One scenario of five steps and some 20 minutes, with a few dozen pods."""
    return world_by(Lot(seed), seed)


@st.composite
def random_worlds(draw: st.DrawFn) -> Json:
    """Worlds whose choices Hypothesis makes."""
    return world_by(Drawn(draw), draw(st.integers(0, 9)))


def world_by(lot: Lot, seed: int) -> Json:
    """The world that a lot decides about."""
    operations: list[Json] = []

    def add(step: int, kind: str, body: Json) -> None:
        operations.append({"step": step, f"{kind}Operation": body})

    for number in range(1 + lot.below(2)):
        add(1, "create", {"object": _node_group(f"group-{number}", lot)})
    add(1, "create", {"object": _nodes(lot), "count": 1 + lot.below(3)})
    add(1, "advance", {"duration": lot.of("1m", "3m")})
    for number, kind in enumerate([_deployment, *_several(WORKLOADS, lot)]):
        add(2, "create", kind(f"{APPS[number % 3]}-{number}", APPS[number % 3], lot))
    add(2, "advance", {"duration": lot.of("30s", "4m")})
    for guest in _several(GUESTS, lot):
        add(3, "create", {"object": guest(lot)})
    add(3, "advance", {"duration": lot.of("2m", "6m")})
    for disturbance in _several(DISTURBANCES, lot):
        add(4, *disturbance(lot))
    add(4, "advance", {"duration": lot.of("1m", "8m")})
    add(STEPS, "done", {})
    return {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "metadata": {"name": f"world-{seed}"},
        "spec": {"operations": operations, "simulation": _simulation(lot, seed)},
    }


def _several(what: Any, lot: Lot) -> list[Any]:
    """At least one of these, in their order."""
    first = lot.below(len(what))
    return [each for number, each in enumerate(what) if number == first or lot.happens(55)]


def _simulation(lot: Lot, seed: int) -> Json:
    settings: Json = {"seed": seed, "explain": lot.of("Auto", "Full", "Failures")}
    if lot.happens(70):
        settings["clusterAutoscaler"] = {
            "expander": lot.of("least-waste", "most-pods", "price"),
            "scale-down-unneeded-time": lot.of("1m", "5m"),
            "scale-down-delay-after-add": "2m",
        }
    if lot.happens(60):
        settings["kubelet"] = {"startDelay": "2s", "readyDelay": "5s", "terminateDelay": "1s"}
    settings["workloads"] = [
        {"selector": {"matchLabels": {"app": "job"}}, **_ends(lot)},
        {"selector": {"matchLabels": {"app": "api"}}, **_misbehaves(lot)},
    ]
    return settings


def _ends(lot: Lot) -> Json:
    run_time = lot.of("20s", {"uniform": {"min": "5s", "max": "90s"}})
    return {"runTime": run_time, **lot.of({}, {"exitCode": 1})}


def _misbehaves(lot: Lot) -> Json:
    return lot.of(
        {"startTime": "2s", "readinessProbe": {"passAfter": "20s"}},
        {"readinessProbe": {"failAfter": "90s", "failFor": "30s", "share": 0.4}},
        {"livenessProbe": {"failAfter": {"uniform": {"min": "40s", "max": "90s"}}}},
        {"usage": {"cpu": {"share": 0.6}, "memory": "90Mi"}},
        {"terminationTime": "7s"},
    )


def _machine(lot: Lot) -> Json:
    amounts = {"cpu": lot.of("4", "8"), "memory": "16Gi", "pods": lot.of("6", "110")}
    return {"capacity": amounts, "allocatable": dict(amounts)}


def _node_group(name: str, lot: Lot) -> Json:
    spec: Json = {
        "size": 1 + lot.below(2),
        "min": 0,
        "max": 4,
        "boot": {"time": lot.of("20s", "90s"), "ready": lot.of("0s", "10s")},
        "template": {"status": _machine(lot)},
    }
    if lot.happens(50):
        spec |= {"price": {"perHour": "0.20"}, "shutdown": {"time": "15s"}}
    return {"apiVersion": OURS, "kind": "NodeGroup", "metadata": {"name": name}, "spec": spec}


def _nodes(lot: Lot) -> Json:
    metadata = {"name": "still-$(INDEX)", "labels": {"pool": "still"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": _machine(lot)}


def _template(app: str, lot: Lot, **spec: Any) -> Json:
    requests = {"cpu": lot.of("100m", "500m", "1"), "memory": "128Mi"}
    container: Json = {"name": "main", "image": f"{app}:1", "resources": {"requests": requests}}
    if app == "web":
        container["resources"]["limits"] = {"cpu": requests["cpu"]}
    if app == "api":
        probe = {"tcpSocket": {"port": 80}, "periodSeconds": 5}
        container |= {"readinessProbe": probe, "livenessProbe": probe}
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container], **spec}}


def _workload(api_version: str, kind: str, name: str, spec: Json) -> Json:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _selected(app: str, name: str, lot: Lot, **more: Any) -> Json:
    template = _template(app, lot)
    template["metadata"]["labels"]["owner"] = name
    selector = {"matchLabels": {"owner": name}}
    return {"selector": selector, "template": template, **more}


def _deployment(name: str, app: str, lot: Lot) -> Json:
    spec = _selected(app, name, lot, replicas=1 + lot.below(6))
    return {"object": _workload("apps/v1", "Deployment", name, spec)}


def _daemon_set(name: str, app: str, lot: Lot) -> Json:
    return {"object": _workload("apps/v1", "DaemonSet", name, _selected(app, name, lot))}


def _stateful_set(name: str, app: str, lot: Lot) -> Json:
    spec = _selected(app, name, lot, replicas=1 + lot.below(4), serviceName=name)
    spec["podManagementPolicy"] = lot.of("OrderedReady", "Parallel")
    return {"object": _workload("apps/v1", "StatefulSet", name, spec)}


def _job(name: str, app: str, lot: Lot) -> Json:
    spec = _job_spec(lot) | lot.of({}, {"ttlSecondsAfterFinished": 60})
    return {"object": _workload("batch/v1", "Job", name, spec)}


def _job_spec(lot: Lot) -> Json:
    return {
        "completions": 1 + lot.below(5),
        "parallelism": 1 + lot.below(3),
        "backoffLimit": 2,
        "completionMode": lot.of("NonIndexed", "Indexed"),
        "template": _template("job", lot, restartPolicy=lot.of("Never", "OnFailure")),
    }


def _cron_job(name: str, app: str, lot: Lot) -> Json:
    spec = {"schedule": "*/2 * * * *", "jobTemplate": {"spec": _job_spec(lot)}}
    return {"object": _workload("batch/v1", "CronJob", name, spec)}


def _counted_pods(name: str, app: str, lot: Lot) -> Json:
    return {"object": _pod(f"{name}-$(INDEX)", app, lot), "count": 2 + lot.below(9)}


def _arrivals(name: str, app: str, lot: Lot) -> Json:
    arrivals: Json = {
        "for": "4m",
        **lot.of({"poisson": {"every": "15s"}}, {"uniform": {"every": "20s"}}),
        "cpu": {"uniform": {"min": "100m", "max": "1"}},
    }
    if lot.happens(60):
        arrivals["runTime"] = {"exponential": {"mean": "50s"}}
    # What arrives asks for more than a limit would allow.
    pod = _pod(f"{name}-$(INDEX)", "job" if app == "web" else app, lot)
    return {"arrivals": arrivals, "object": pod}


def _pod(name: str, app: str, lot: Lot) -> Json:
    template = _template(app, lot, restartPolicy="Never" if app == "job" else "Always")
    metadata = {"name": name, "namespace": "default", "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


WORKLOADS = (
    _daemon_set,
    _job,
    _stateful_set,
    _counted_pods,
    _arrivals,
    _cron_job,
)


def _service(lot: Lot) -> Json:
    spec = {"selector": {"app": lot.of("web", "api")}, "ports": [{"port": 80}]}
    return _workload("v1", "Service", "front", spec)


def _traffic(lot: Lot) -> Json:
    arrivals = lot.of(
        {"pattern": "constant", "spacing": "poisson", "constant": {"rps": 60}},
        {"pattern": "piecewise", "piecewise": {"points": [{"at": "0s", "rps": 25}]}},
    )
    request = {"cpuTime": "20ms", "ioTime": "5ms", "timeout": "2s"}
    to = {"selector": {"matchLabels": {"app": lot.of("web", "web", "api")}}}
    return _workload(OURS, "Traffic", "load", {"to": to, "arrivals": arrivals, "request": request})


def _target(lot: Lot) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": lot.of("web-0", "web-0", "web-0", "none"),
    }


def _horizontal(lot: Lot) -> Json:
    target = {"type": "Utilization", "averageUtilization": lot.of(20, 60)}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    spec = {"maxReplicas": 6, "scaleTargetRef": _target(lot), "metrics": metrics}
    return _workload("autoscaling/v2", "HorizontalPodAutoscaler", "h", spec)


def _vertical(lot: Lot) -> Json:
    mode = lot.of("Off", "Recreate", "Initial")
    spec = {"targetRef": _target(lot), "updatePolicy": {"updateMode": mode, "minReplicas": 1}}
    return _workload("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "v", spec)


def _budget(lot: Lot) -> Json:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    return _workload("policy/v1", "PodDisruptionBudget", "b", spec)


GUESTS = (_service, _traffic, _horizontal, _vertical, _budget)


def _outage(lot: Lot) -> tuple[str, Json]:
    spec = lot.of(
        {"nodes": {}, "what": "NodesGone", "count": 1},
        {"nodes": {}, "what": "NodesSilent", "share": 0.5, "for": "2m"},
        {"nodes": {}, "what": "CpuStolen", "cpuShare": 0.5, "for": "2m"},
        {"nodes": {}, "what": "ImagePull", "share": 0.5, "pullTime": "30s", "for": "3m"},
        {"nodes": {}, "what": "SpotReclaim", "count": 1},
    )
    metadata = {"name": "trouble"}
    outage = {"apiVersion": OURS, "kind": "Outage", "metadata": metadata, "spec": spec}
    return "create", {"object": outage}


def _drain(lot: Lot) -> tuple[str, Json]:
    return "drain", {"selector": {"matchLabels": {"pool": "still"}}, "force": True}


def _evict(lot: Lot) -> tuple[str, Json]:
    return "evict", {"selector": {"matchLabels": {"app": lot.of(*APPS)}}, "limit": 2}


def _resize_group(lot: Lot) -> tuple[str, Json]:
    return "patch", {
        "typeMeta": {"apiVersion": OURS, "kind": "NodeGroup"},
        "objectMeta": {"name": "group-0"},
        "patch": lot.of('{"spec": {"size": 3}}', '{"spec": {"size": 0}}'),
        "patchType": "merge",
    }


DISTURBANCES = (_outage, _drain, _evict, _resize_group)
