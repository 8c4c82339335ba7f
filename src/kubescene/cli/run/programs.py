"""``kubescene run --outside NAME="command"``: programs of yours take part in a scenario.

A server is started for them on a free port, and the scenario is played there.
"""

from collections.abc import Sequence
from pathlib import Path

from kubescene.apiserver.server import Server
from kubescene.autoscalers.interfaces import AutoscalerPlugin
from kubescene.autoscalers.references import running
from kubescene.cli.components import autoscalers_named, names_in, registered, waiters_named
from kubescene.cli.files import ScenarioFile, read_scenario
from kubescene.cli.run.at_server import run_on_server
from kubescene.cli.run.junit import told_to
from kubescene.cli.run.playing import RunArguments, output_path, with_annotations
from kubescene.clock import WallClock
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.errors import ConfigurationError
from kubescene.outside.supervision import Supervisor
from kubescene.scenario.outside import OutsideController
from kubescene.scenario.spec import parse_spec


def run_with_programs(path: Path, arguments: RunArguments) -> int:
    """Play a file with the programs that its ``controllers.outside`` names."""
    refuse_elsewhere(arguments)
    out = output_path(arguments.out)
    commands = dict(map(named_command, arguments.outside))
    with told_to(arguments.junit, path) as junit:
        file = with_annotations(read_scenario(path), wanted=arguments.annotate)
        declared = declared_in(file, commands)
        refuse_twice(arguments, commands)
        with (
            running(arguments.autoscaler_processes) as processes,
            Server(world_of(arguments, processes), port=0, controllers=False) as server,
            Supervisor(server.stage, server.engine.post, server.url) as supervisor,
        ):
            server.stage.waiters = waiters_named(arguments.waiters)
            for each in declared:
                if each.name in commands:
                    supervisor.start(each, commands[each.name])
            return run_on_server(
                file,
                server.url,
                out=out,
                seed=arguments.seed,
                quiet=arguments.quiet,
                delete=False,
                junit=junit,
            )


def world_of(arguments: RunArguments, processes: Sequence[AutoscalerPlugin] = ()) -> ClusterWorld:
    """The world of the scenario, with what the command line brings to it."""
    options = ClusterOptions(
        events=True,
        scheduler=arguments.scheduler(),
        without=names_in(arguments.without),
        autoscaler_plugins=(*autoscalers_named(arguments.autoscalers), *processes),
    )
    controllers = registered(options, arguments.controllers)
    return ClusterWorld(
        options, controllers=controllers, clock=WallClock(), server_clock=WallClock()
    )


def named_command(given: str) -> tuple[str, str]:
    name, equals, command = given.partition("=")
    if not equals or not name.strip() or not command.strip():
        raise ConfigurationError(
            f'--outside {given!r}: it must be NAME="command", NAME as in spec.controllers.outside'
        )
    return name.strip(), command


def declared_in(file: ScenarioFile, commands: dict[str, str]) -> Sequence[OutsideController]:
    """Who is called; `ConfigurationError` for a program that the scenario does not know."""
    declared = parse_spec(file.scenario, file.folder).outside
    known = [each.name for each in declared]
    for name in commands:
        if name not in known:
            raise ConfigurationError(
                f"--outside {name}: {file.name} has no such controller in "
                f"spec.controllers.outside (there are: {', '.join(known) or 'none'})"
            )
    return declared


def refuse_twice(arguments: RunArguments, commands: dict[str, str]) -> None:
    """Refuse to leave out whom a program replaces by its name, so that --without is what it says.

    A program of another name (a kube-controller-manager) replaces those who are left out.
    """
    for name in sorted(names_in(arguments.without).intersection(commands)):
        raise ConfigurationError(
            f"--without {name}: --outside {name} takes the place of the built-in controller of "
            "that name already: leave one of the two away"
        )


def refuse_elsewhere(arguments: RunArguments) -> None:
    """Refuse what cannot be done while programs outside take part."""
    wrong = {
        "--interactive": arguments.interactive,
        "--remedies": arguments.remedies,
        "--full-status": arguments.full_status,
        "--report": arguments.report,
        "--strict": arguments.strict,
        "--measure": arguments.measures,
    }
    if named := [name for name, value in wrong.items() if value]:
        raise ConfigurationError(
            f"{', '.join(named)} cannot be used with --outside: a world in which other programs "
            "take part is played by a server and cannot be copied"
        )
