"""A KubeSchedulerConfiguration as kube-scheduler reads it: decoded, completed, checked.

The order of these is kube-scheduler's, and so are the words of what is refused: the text of a
`SchedulerConfigurationError` is what its log would say. Plugins are known by their classes; none is
made here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kubescene.api.text.reading import Duplicate
from kubescene.errors import SchedulerConfigurationError
from kubescene.scheduler.configuration.added_plugins import installed_plugin
from kubescene.scheduler.configuration.arguments import decode_arguments
from kubescene.scheduler.configuration.checks import check
from kubescene.scheduler.configuration.decoding import Decoder
from kubescene.scheduler.configuration.defaulting import with_defaults
from kubescene.scheduler.configuration.extending import ignore_managed, make_extenders
from kubescene.scheduler.configuration.plugin_sets import names_of
from kubescene.scheduler.configuration.profiles import make_profiles
from kubescene.scheduler.configuration.schema import API_VERSION, CONFIGURATION, KIND
from kubescene.scheduler.configuration.unregistered import not_registered
from kubescene.scheduler.extenders.extenders import ExtenderCaller
from kubescene.scheduler.framework.interfaces import PluginFactory
from kubescene.scheduler.framework.plugin_registry import ClassFactory
from kubescene.scheduler.framework.profile import Backoff, EnabledPlugin
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.plugins.default_profile import default_plugins
from kubescene.types import JsonObject


def read_configuration(
    value: Mapping[str, Any],
    base: SchedulerOptions | None = None,
    *,
    source: str = "",
    duplicates: Sequence[Duplicate] = (),
) -> SchedulerOptions:
    """The options that a configuration stands for.

    ``base`` says what else the scheduler is made with: plugins beyond the built-in ones, how much
    it explains, who calls extenders. ``source`` is named in errors.
    """
    try:
        decoded = decode(value, duplicates)
        return configured(decoded, base or SchedulerOptions())
    except SchedulerConfigurationError as error:
        raise error.of(source) from None


def check_configuration(value: Mapping[str, Any]) -> None:
    """Raise for what is wrong with a configuration whatever plugins there are."""
    check(with_defaults(decode(value), default_plugins())).raise_if_any()


def decode(value: Mapping[str, Any], duplicates: Sequence[Duplicate] = ()) -> JsonObject:
    """The fields of a configuration, plugin arguments included; raises for what is not one."""
    _check_identity(value)
    decoder = Decoder()
    decoded: JsonObject = decoder.decode(CONFIGURATION, value)
    faults = [(path, f'unknown field "{path}"') for path in decoder.unknown]
    faults[:0] = [(each.key, _twice(each)) for each in duplicates]
    for at, profile in enumerate(decoded.get("profiles") or ()):
        for index, each in enumerate(profile.get("pluginConfig") or ()):
            path = f"profiles[{at}].pluginConfig[{index}]"
            each.setdefault("name", "")
            each["args"] = decode_arguments(each["name"], each.get("args"), path, faults)
    if faults:
        text = ", ".join(text for _, text in faults)
        raise SchedulerConfigurationError(f"strict decoding error: {text}", faults[0][0])
    return decoded


def _check_identity(value: Any) -> None:
    if not isinstance(value, Mapping):
        raise SchedulerConfigurationError(f"a configuration is an object of kind {KIND}")
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            text = f"Object '{field}' is missing: it must be {_wanted(field)}"
            raise SchedulerConfigurationError(text, field)
    if value["apiVersion"] != API_VERSION or value["kind"] != KIND:
        wrong = "kind" if value["apiVersion"] == API_VERSION else "apiVersion"
        text = not_registered(value["kind"], value["apiVersion"])
        raise SchedulerConfigurationError(text, wrong)


def _wanted(field: str) -> str:
    return API_VERSION if field == "apiVersion" else KIND


def _twice(duplicate: Duplicate) -> str:
    place = f"line {duplicate.line}, column {duplicate.column}: " if duplicate.line else ""
    return f'{place}duplicate field "{duplicate.key}"'


def configured(decoded: JsonObject, base: SchedulerOptions) -> SchedulerOptions:
    """What a decoded configuration makes of other options."""
    plugins = {**base.plugins, **_installed(decoded, base)}
    registry = replace(base, plugins=plugins).registry()
    complete = with_defaults(
        decoded, [*default_plugins(base.feature_gates), *_added(decoded, base.added)]
    )
    check(complete).raise_if_any()
    extenders = make_extenders(complete.get("extenders") or ())
    ignore_managed(complete)
    return replace(
        base,
        profiles=make_profiles(complete, registry.points_of),
        plugins=plugins,
        backoff=Backoff(complete["podInitialBackoffSeconds"], complete["podMaxBackoffSeconds"]),
        extenders=extenders,
        extender_caller=base.extender_caller or (_http_caller() if extenders else None),
        configuration=complete,
    )


def _http_caller() -> ExtenderCaller:
    # HTTP is imported only where there are extenders.
    from kubescene.scheduler.extenders.http import HttpExtenderCaller

    return HttpExtenderCaller()


def _named(decoded: JsonObject, key: str) -> list[str]:
    profiles = decoded.get("profiles") or ()
    return [name for each in profiles for name in names_of(each.get("plugins") or {}, key)]


def _installed(decoded: JsonObject, base: SchedulerOptions) -> dict[str, PluginFactory]:
    """The plugins that other packages offer and the configuration enables."""
    registry = base.registry()
    wanted = [name for name in dict.fromkeys(_named(decoded, "enabled")) if name not in registry]
    found = {name: installed_plugin(name) for name in wanted}
    return {name: ClassFactory(plugin) for name, plugin in found.items() if plugin is not None}


def _added(decoded: JsonObject, added: Iterable[str]) -> list[EnabledPlugin]:
    """The user's own plugins, which join the defaults unless a profile speaks of them."""
    spoken_of = {*_named(decoded, "enabled"), *_named(decoded, "disabled")}
    return [EnabledPlugin(name) for name in added if name not in spoken_of]
