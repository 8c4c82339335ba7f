"""``kubescene run --outside NAME="command"``: programs of yours take part in a scenario.

A server is started for them on a free port, and the scenario is played there.
"""

from collections.abc import Sequence
from pathlib import Path

from kubescene.apiserver.server import Server
from kubescene.cli.controllers import registered
from kubescene.cli.files import ScenarioFile, read_scenario
from kubescene.cli.junit import told_to
from kubescene.cli.kubeconfig import make_kubeconfig
from kubescene.cli.remote import run_on_server
from kubescene.cli.run import RunArguments, forget_summary, output_path, with_annotations
from kubescene.clock import WallClock
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.errors import ConfigurationError
from kubescene.outside.supervision import Supervisor, Surroundings
from kubescene.scenario.outside import entries_of


def run_with_programs(path: Path, arguments: RunArguments, given: Sequence[str]) -> int:
    """Play a file with the programs that its ``controllers.outside`` names."""
    refuse_elsewhere(arguments)
    out = output_path(arguments.out)
    forget_summary(out)
    commands = dict(map(named_command, given))
    with told_to(arguments.junit, path) as junit:
        file = with_annotations(read_scenario(path), wanted=arguments.annotate)
        check_named(file, commands)
        with (
            Server(world_of(arguments), port=0, controllers=False) as server,
            Supervisor(server.stage, server.engine.post) as supervisor,
        ):
            for name, command in commands.items():
                supervisor.start(name, command, surroundings(server.url, name))
            return run_on_server(
                file,
                server.url,
                out=out,
                seed=arguments.seed,
                quiet=arguments.quiet,
                delete=False,
                junit=junit,
            )


def world_of(arguments: RunArguments) -> Cluster:
    """The world of the scenario, with what the command line brings to it."""
    options = ClusterOptions(events=True, scheduler=arguments.scheduler())
    controllers = registered(options, arguments.controllers)
    return Cluster(options, controllers=controllers, clock=WallClock(), server_clock=WallClock())


def surroundings(url: str, name: str) -> Surroundings:
    # YAML is imported only when it is written.
    import yaml

    document = make_kubeconfig(url, as_user=name)
    server: str = document["clusters"][0]["cluster"]["server"]
    return Surroundings(yaml.safe_dump(document, sort_keys=False), server)


def named_command(given: str) -> tuple[str, str]:
    name, equals, command = given.partition("=")
    if not equals or not name.strip() or not command.strip():
        raise ConfigurationError(
            f'--outside {given!r}: it must be NAME="command", NAME as in spec.controllers.outside'
        )
    return name.strip(), command


def check_named(file: ScenarioFile, commands: dict[str, str]) -> None:
    """Refuse a program that the scenario does not know, and one that nobody starts."""
    spec = file.scenario.get("spec")
    declared = [each.get("name") for each in entries_of(spec if isinstance(spec, dict) else {})]
    listed = ", ".join(map(str, declared)) or "none"
    for name in commands:
        if name not in declared:
            raise ConfigurationError(
                f"--outside {name}: {file.name} has no such controller in "
                f"spec.controllers.outside (there are: {listed})"
            )


def refuse_elsewhere(arguments: RunArguments) -> None:
    """Refuse what cannot be done while programs outside take part."""
    wrong = {
        "--interactive": arguments.interactive,
        "--remedies": arguments.remedies,
        "--full-status": arguments.full_status,
        "--report": arguments.report,
        "--strict": arguments.strict,
    }
    if named := [name for name, value in wrong.items() if value]:
        raise ConfigurationError(
            f"{', '.join(named)} cannot be used with --outside: a world in which other programs "
            "take part is played by a server and cannot be copied"
        )
