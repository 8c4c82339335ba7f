"""Many runs: how much faster more jobs are, and whether a long matrix is as quick as a short one.

    python bench/matrix.py [--quick]

A matrix of 16 runs of a thousand pods with 1, 2 and 4 jobs. Wall time depends on who else uses the
machine, CPU time does not: workers that cost nothing would need as much CPU together as one job
does alone. So the speed-up on cores of one's own is what one job takes, divided by what this
process takes plus the share of one worker. A worker is a new interpreter that imports Kubescene;
that is in its share.

Then hundreds of small runs: CPU per run and peak memory, of this process and of the largest worker.
"""

import resource

from measuring import Figures, Stopwatch, alone, peak_mb, row, start

RUNS = 16
MANY = (100, 400)
SMALL_PODS = 20


def measure(jobs: int, pods: int, runs: int) -> Figures:
    from kubescene.experiments import matrix
    from kubescene.scenario import ScenarioBuilder
    from kubescene.testing import make_node, make_pod

    scenario = ScenarioBuilder("matrix")
    scenario.create(make_node("node-$(INDEX)").cpu("16").memory("64Gi"), count=pods // 10)
    pod = make_pod("pod-$(INDEX)").cpu("100m").memory("256Mi")
    scenario.step(2).create(pod, count=pods)
    watch = Stopwatch()
    found = matrix(scenario.done(), seeds=runs, jobs=jobs)
    assert found.ok, found.failed
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    return watch.read()._asdict() | {
        "workers_s": workers.ru_utime + workers.ru_stime,
        "peak_mb": peak_mb(),
        "worker_mb": workers.ru_maxrss / 1024,
    }


def speed_up(jobs: int, pods: int) -> None:
    alone_s = 0.0
    for count in (1, 2, 4)[:jobs]:
        found = alone(__file__, jobs=count, pods=pods, runs=RUNS)
        path_s = found["cpu_s"] + found["workers_s"] / count
        alone_s = alone_s or path_s
        whole_s = found["cpu_s"] + found["workers_s"]
        told = (
            f"{whole_s:6.2f} s CPU, of which {found['cpu_s']:5.2f} s here; "
            f"{whole_s / RUNS * 1000:5.0f} ms a run; {alone_s / path_s:4.2f} times as fast on "
            f"cores of their own ({found['wall_s']:.2f} s wall)"
        )
        row(f"{RUNS} runs of {pods:,} pods, {count} jobs", told)


def long(runs: int) -> None:
    found = alone(__file__, jobs=2, pods=SMALL_PODS, runs=runs)
    whole_s = found["cpu_s"] + found["workers_s"]
    told = (
        f"{whole_s:6.2f} s CPU, {whole_s / runs * 1000:5.1f} ms a run; "
        f"{found['peak_mb']:.0f} MB here, {found['worker_mb']:.0f} MB the largest worker"
    )
    row(f"{runs} runs of {SMALL_PODS} pods, 2 jobs", told)


def main(quick: bool) -> None:
    speed_up(2 if quick else 3, 200 if quick else 1_000)
    for runs in MANY[:1] if quick else MANY:
        long(runs)


if __name__ == "__main__":
    start(measure, main)
