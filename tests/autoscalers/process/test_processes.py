"""Autoscalers in other processes: the same bytes, many runs, and a graceful end."""

import copy
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import pytest

from kubescene.autoscalers import (
    Autoscaler,
    Capability,
    ProcessAutoscaler,
)
from kubescene.autoscalers.dispatcher import Dispatcher
from kubescene.errors import ConfigurationError, TrafficError
from kubescene.traffic import load_run, run
from kubescene.types import JsonObject
from plugin_commands import PROGRAMS, program

EXAMPLES = Path(__file__).parents[3] / "examples" / "traffic"
OBJECT = Autoscaler("behaving.example.com", "")


def files(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted(folder.iterdir())}


@pytest.mark.parametrize("example", ["step", "flapping"])
def test_in_and_out_of_process_give_the_same_bytes(example: str, tmp_path: Path) -> None:
    file = EXAMPLES / f"{example}.yaml"
    run(file).save(tmp_path / "in")
    run(file, [ProcessAutoscaler(program("served", "horizontal"))]).save(tmp_path / "out")
    assert files(tmp_path / "in") == files(tmp_path / "out")


def test_two_processes_give_the_same_bytes_as_none(tmp_path: Path) -> None:
    """Until the one has added replicas and the other has evicted all of them once."""
    asked = load_run(EXAMPLES / "fighting.yaml", ["spec.duration=14h"])
    plugins = [ProcessAutoscaler(program("served", each)) for each in ("horizontal", "vertical")]
    alone = run(asked)
    assert (alone.summary.scale_ups, alone.summary.evictions) == (2, 3)
    alone.save(tmp_path / "in")
    run(asked, plugins).save(tmp_path / "out")
    assert files(tmp_path / "in") == files(tmp_path / "out")


def test_an_object_is_refused_in_the_same_words() -> None:
    import yaml

    asked = yaml.safe_load((EXAMPLES / "step.yaml").read_text())
    asked["spec"]["autoscalers"][0]["object"]["spec"]["maxReplicas"] = 0
    told = []
    for plugins in ([], [ProcessAutoscaler(program("served", "horizontal"))]):
        with pytest.raises(TrafficError) as caught:
            run(asked, plugins)
        told.append(str(caught.value))
    assert told[0] == told[1]


def small_run(number: int) -> JsonObject:
    """A minute of traffic; no two of the first forty are alike."""
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    spec = {
        "maxReplicas": 3 + number % 8,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metrics": [{"type": "Resource", "resource": resource}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 10 * (number % 5)}},
    }
    hpa = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "hpa"},
        "spec": spec,
    }
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "TrafficRun",
        "metadata": {"name": "small"},
        "spec": {
            "duration": "60s",
            "seed": number,
            "horizontalInterval": "10s",
            "traffic": {"pattern": "constant", "constant": {"rps": 1 + number % 5}},
            "request": {"cpuTime": "300ms", "ioTime": "0s"},
            "replicas": {"initial": 1 + number % 3, "launchDelay": "2s"},
            "autoscalers": [{"object": hpa}],
        },
    }


def test_two_hundred_runs_at_once_are_kept_apart(tmp_path: Path) -> None:
    """Simulated in as many threads, all asking one process; each as if it were alone."""
    numbers = [number % 40 for number in range(200)]
    plugin = ProcessAutoscaler(program("served", "horizontal"))
    dispatcher, pid = Dispatcher([plugin]), plugin.connection.child.pid
    everybody = Barrier(len(numbers))

    def play(number: int, folder: Path) -> None:
        everybody.wait()
        run(small_run(number), dispatcher=dispatcher).save(folder)

    folders = [tmp_path / f"{at}" for at in range(len(numbers))]
    with ThreadPoolExecutor(len(numbers)) as pool:
        list(pool.map(play, numbers, folders))
    assert plugin.connection.child.pid == pid, "one process served all"
    dispatcher.close()
    alone = {}
    for number in range(40):
        run(small_run(number)).save(tmp_path / f"alone-{number}")
        alone[number] = files(tmp_path / f"alone-{number}")
    assert len({str(each) for each in alone.values()}) == 40
    for number, folder in zip(numbers, folders, strict=True):
        assert files(folder) == alone[number], number


def test_one_process_serves_one_run_after_the_other() -> None:
    plugin = ProcessAutoscaler(program("served", "horizontal"))
    dispatcher = Dispatcher([plugin])
    pid = plugin.connection.child.pid
    for _ in range(2):
        assert run(EXAMPLES / "step.yaml", dispatcher=dispatcher).ok
    assert plugin.connection.child.pid == pid
    dispatcher.close()


def test_a_closed_one_starts_again_for_the_next_run() -> None:
    plugin = ProcessAutoscaler(program("served", "horizontal"))
    assert [run(EXAMPLES / "step.yaml", [plugin]).ok for _ in range(2)] == [True, True]


def test_a_port_does_as_well_as_a_socket() -> None:
    plugin = ProcessAutoscaler(program("behaving", "tcp"))
    address = plugin.connection.child.address
    assert address is not None
    assert address.network == "tcp"
    with Dispatcher([plugin]).partition([OBJECT]) as partition:
        partition.begin(0)
        assert partition.horizontal(1) is not None
    plugin.close()


def test_it_says_what_it_is() -> None:
    plugin = ProcessAutoscaler(program("served", "vertical"))
    assert plugin.types == ("vpa.v1.autoscaling.k8s.io", "vpa.v1beta2.autoscaling.k8s.io")
    assert Capability.VERTICAL_RECOMMENDATION in plugin.capabilities
    child = plugin.connection.child
    plugin.close()
    assert child.exit_told() == "exited with code 0"


def test_a_forgotten_one_is_ended() -> None:
    plugin = ProcessAutoscaler(program("behaving", "well"))
    child = plugin.connection.child
    del plugin
    assert child.has_exited()


def test_a_process_cannot_be_copied() -> None:
    plugin = ProcessAutoscaler(program("behaving", "well"))
    with pytest.raises(ConfigurationError, match="cannot be copied: it is another process"):
        copy.deepcopy(plugin)
    plugin.close()


def started_by_hand(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROGRAMS / "behaving.py"), "well"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


def test_a_plugin_started_by_hand_says_what_it_is() -> None:
    done = started_by_hand()
    assert (done.returncode, done.stdout) == (1, "")
    assert "This is an autoscaler plugin" in done.stderr


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"PLUGIN_CLIENT_CERT": "c"}, "The host wants TLS"),
        ({"PLUGIN_PROTOCOL_VERSIONS": "2,3"}, "The host speaks versions 2, 3"),
        ({"PLUGIN_UNIX_SOCKET_DIR": "/nowhere"}, "No socket can be made in PLUGIN_UNIX_SOCKET_DIR"),
    ],
)
def test_a_plugin_refuses_a_host_that_wants_more(environment: dict[str, str], told: str) -> None:
    done = started_by_hand(SKENARIO_PLUGIN="skplug", **environment)
    assert done.returncode == 1
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_plugin_goes_when_its_host_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, signal, os\n"
        "from kubescene.autoscalers import ProcessAutoscaler\n"
        "plugin = ProcessAutoscaler(sys.argv[1])\n"
        "print(plugin.connection.child.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, program("behaving", "well")],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    while Path(f"/proc/{pid}").exists():  # it looks every second
        Event().wait(0.1)
