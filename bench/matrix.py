"""Many runs: how much faster more jobs are.

    python bench/matrix.py [--quick]

A matrix of 16 runs of a thousand pods. Wall time includes the start of the workers, each a new
interpreter that imports Kubescene.
"""

from measuring import Figures, Stopwatch, alone, row, start

RUNS = 16


def measure(jobs: int, pods: int) -> Figures:
    from kubescene.experiments import matrix
    from kubescene.scenario import ScenarioBuilder
    from kubescene.testing import make_node, make_pod

    scenario = ScenarioBuilder("matrix")
    scenario.create(make_node("node-$(INDEX)").cpu("16").memory("64Gi"), count=pods // 10)
    pod = make_pod("pod-$(INDEX)").cpu("100m").memory("256Mi")
    scenario.step(2).create(pod, count=pods)
    watch = Stopwatch()
    found = matrix(scenario.done(), seeds=RUNS, jobs=jobs)
    assert found.ok, found.failed
    return watch.read()._asdict()


def main(quick: bool) -> None:
    pods = 200 if quick else 1_000
    alone_s = 0.0
    for jobs in (1, 2, 4):
        wall_s = alone(__file__, jobs=jobs, pods=pods)["wall_s"]
        alone_s = alone_s or wall_s
        told = f"{wall_s:6.2f} s wall, {RUNS / wall_s:5.1f} runs/s, {alone_s / wall_s:4.2f} times"
        row(f"{RUNS} runs of {pods:,} pods, {jobs} jobs", told)


if __name__ == "__main__":
    start(measure, main)
