"""A KubeSchedulerConfiguration as kube-scheduler reads it: decoded, completed, checked.

The order of these is kube-scheduler's, and so are the words of what is refused: the text of a
`SchedulerConfigurationError` is what its log would say. Plugins are known by their classes; none is
made here. From a complete configuration come the profiles that a scheduler is made with (K-7, K-8,
K-14), and from these the configuration that is in force, for those who ask.
"""

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kubescene.api.text.reading import Bounds, Document, Duplicate, ReadingError, read_json
from kubescene.clock import SECOND
from kubescene.durations import parse_signed_duration
from kubescene.errors import SchedulerConfigurationError
from kubescene.scheduler.configuration.added_plugins import installed_plugin
from kubescene.scheduler.configuration.argument_checks import check_fit
from kubescene.scheduler.configuration.argument_schema import ARGUMENTS
from kubescene.scheduler.configuration.arguments import decode_arguments
from kubescene.scheduler.configuration.checks import check
from kubescene.scheduler.configuration.decoding import Decoder
from kubescene.scheduler.configuration.defaulting import EVERY, as_written, names_of, with_defaults
from kubescene.scheduler.configuration.expansion import Expansion, PointsOf, field_of
from kubescene.scheduler.configuration.field_faults import aggregated, not_registered
from kubescene.scheduler.configuration.schema import (
    API_VERSION,
    CONFIGURATION,
    KIND,
    MULTI_POINT,
    TYPE_META,
)
from kubescene.scheduler.extenders.extenders import (
    Extender,
    ExtenderAddress,
    ExtenderTls,
    ExtenderVerb,
)
from kubescene.scheduler.framework.interfaces import PluginFactory
from kubescene.scheduler.framework.plugin_registry import ClassFactory
from kubescene.scheduler.framework.profile import Backoff, EnabledPlugin, ExtensionPoint, Profile
from kubescene.scheduler.options import SchedulerOptions, http_caller
from kubescene.scheduler.plugins.default_profile import default_plugins
from kubescene.types import JsonObject, ReadOnlyObject


def describe(options: SchedulerOptions) -> ReadOnlyObject:
    """A configuration that makes these options, complete.

    If they were put together by hand, every point lists its plugins.
    """
    if options.configuration is not None:
        return options.configuration
    written = {
        "podInitialBackoffSeconds": options.backoff.initial_s,
        "podMaxBackoffSeconds": options.backoff.maximum_s,
        "profiles": [_profile(each, options) for each in options.profiles],
    }
    return with_defaults(written, _defaults(options))


def _defaults(options: SchedulerOptions) -> list[EnabledPlugin]:
    return [*default_plugins(options.feature_gates), *map(EnabledPlugin, options.added)]


def _profile(profile: Profile, options: SchedulerOptions) -> JsonObject:
    written: JsonObject = {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
    }
    if profile.arguments:
        written["pluginConfig"] = [
            {"name": name, "args": {**args}} for name, args in profile.arguments.items()
        ]
    if not _is_default(profile, options):
        everything = {"disabled": [{"name": EVERY}]}
        written["plugins"] = {MULTI_POINT: everything} | {
            field_of(point): {"enabled": as_written(profile.at(point))}
            for point in ExtensionPoint
            if profile.at(point)
        }
    return written


def _is_default(profile: Profile, options: SchedulerOptions) -> bool:
    return profile.points == SchedulerOptions().profiles[0].points and not options.added


FIT = "NodeResourcesFit"
_FAILED = "initializing profiles: "


def make_profiles(configuration: JsonObject, points_of: PointsOf) -> tuple[Profile, ...]:
    """One profile per entry of ``profiles``; all of them sort the queue alike."""
    whole = configuration["percentageOfNodesToScore"]
    profiles: list[Profile] = []
    for index, given in enumerate(configuration["profiles"]):
        path, name = f"profiles[{index}]", given["schedulerName"]
        try:
            made = _make_profile(given, path, points_of, whole)
        except SchedulerConfigurationError as error:
            text = f"{_FAILED}creating profile for scheduler name {name}: {error.text}"
            raise SchedulerConfigurationError(text, error.path) from error
        profiles.append(made)
        _compare_queue_sorts(profiles[0], made, path)
    return tuple(profiles)


def _make_profile(given: JsonObject, path: str, points_of: PointsOf, percentage: int) -> Profile:
    arguments = _arguments(given["pluginConfig"])
    if FIT in names_of(given["plugins"]):
        _check_fit(given["pluginConfig"], arguments[FIT], path)
    points = Expansion(given["plugins"], points_of, f"{path}.plugins").points()
    _check_counts(points, given["schedulerName"], path)
    return Profile(
        given["schedulerName"],
        points,
        arguments,
        given.get("percentageOfNodesToScore", percentage),
    )


def _arguments(config: list[JsonObject]) -> Mapping[str, Mapping[str, Any]]:
    """What the factories are given: what the arguments are called is no argument."""
    return {
        each["name"]: {key: value for key, value in each["args"].items() if key not in TYPE_META}
        if each["name"] in ARGUMENTS
        else each["args"]
        for each in config
        if each.get("args") is not None
    }


def _check_fit(config: list[JsonObject], args: Mapping[str, Any], path: str) -> None:
    """Only the plugin itself looks at its arguments (K-13)."""
    if errors := check_fit({**args}):
        at = next(index for index, each in enumerate(config) if each["name"] == FIT)
        text = f'initializing plugin "{FIT}": {aggregated(errors)}'
        place = f"{path}.pluginConfig[{at}].args.{errors[0].field}"
        raise SchedulerConfigurationError(text, place)


def _check_counts(
    points: Mapping[ExtensionPoint, tuple[EnabledPlugin, ...]], name: str, path: str
) -> None:
    if (count := len(points[ExtensionPoint.QUEUE_SORT])) != 1:
        raise SchedulerConfigurationError(
            f'only one queue sort plugin required for profile with scheduler name "{name}", '
            f"but got {count}",
            f"{path}.plugins.queueSort",
        )
    if not points[ExtensionPoint.BIND]:
        raise SchedulerConfigurationError(
            f'at least one bind plugin is needed for profile with scheduler name "{name}"',
            f"{path}.plugins.bind",
        )


def _compare_queue_sorts(first: Profile, other: Profile, path: str) -> None:
    sorts = [profile.at(ExtensionPoint.QUEUE_SORT)[0].name for profile in (first, other)]
    if sorts[0] == sorts[1]:
        return
    raise SchedulerConfigurationError(
        f"{_FAILED}different queue sort plugins for profile "
        f'"{other.scheduler_name}": "{sorts[1]}", first: "{sorts[0]}"',
        f"{path}.plugins.queueSort",
    )


MAX_SIZE = 3 * 1024 * 1024
DEFAULT_TIMEOUT = 5 * SECOND
_BOUNDS = Bounds(aliased=10_000)


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
        extender_caller=base.extender_caller or (http_caller() if extenders else None),
        configuration=complete,
    )


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


def load_configuration(path: str | Path, base: SchedulerOptions | None = None) -> SchedulerOptions:
    """The options that a configuration file (YAML or JSON) stands for; see `read_configuration`."""
    source = str(path)
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise SchedulerConfigurationError(f"cannot be read: {error.strerror}", "", source) from None
    return parse_configuration(text, base, source=source)


def parse_configuration(
    text: bytes, base: SchedulerOptions | None = None, *, source: str
) -> SchedulerOptions:
    """The same for the text of a file."""
    if len(text) > MAX_SIZE:
        raise SchedulerConfigurationError(f"has more than {MAX_SIZE} bytes", "", source)
    try:
        document = read_text(text)
    except ReadingError as error:
        raise SchedulerConfigurationError(str(error), "", source) from None
    return read_configuration(document.value, base, source=source, duplicates=document.duplicates)


def read_text(text: bytes) -> Document:
    """JSON, or a YAML text with one document."""
    if text.lstrip().startswith(b"{"):
        return read_json(text, _BOUNDS)
    # YAML is imported only where there is some.
    from kubescene.api.text.yaml_text import read_yaml

    documents = [each for each in read_yaml(text, _BOUNDS) if each.value is not None]
    if len(documents) != 1:
        raise ReadingError(f"it must hold one document, not {len(documents)}")
    return documents[0]


def make_extenders(extenders: Sequence[JsonObject]) -> tuple[Extender, ...]:
    """An extender goes by the address under which it is reached."""
    return tuple(_extender(each, f"extenders[{at}]") for at, each in enumerate(extenders))


def _extender(given: JsonObject, path: str) -> Extender:
    paths = {verb: given[f"{verb}Verb"] for verb in ExtenderVerb if given.get(f"{verb}Verb")}
    url = given.get("urlPrefix", "")
    timeout = parse_signed_duration(given.get("httpTimeout", "0s")) or DEFAULT_TIMEOUT
    return Extender(
        name=url,
        verbs=frozenset(paths),
        weight=given.get("weight", 0),
        ignorable=given.get("ignorable", False),
        managed_resources=frozenset(each["name"] for each in given.get("managedResources") or ()),
        node_cache_capable=given.get("nodeCacheCapable", False),
        address=ExtenderAddress(url, paths, timeout, _tls(given, path)),
    )


def _tls(given: JsonObject, path: str) -> ExtenderTls | None:
    """Whom to trust. Over https without a certificate authority, everybody is trusted (X-1)."""
    config = given.get("tlsConfig")
    authority = bool(config and (config.get("caFile") or config.get("caData")))
    insecure = bool(config and config.get("insecure"))
    if authority and insecure:
        raise SchedulerConfigurationError(
            "couldn't build extenders: specifying a root certificates file with the insecure flag "
            "is not allowed",
            f"{path}.tlsConfig",
        )
    insecure |= given.get("enableHTTPS", False) and not authority
    if config is None and not insecure:
        return None
    given_tls = config or {}
    tls = ExtenderTls(
        insecure=insecure,
        server_name=given_tls.get("serverName", ""),
        ca_file=given_tls.get("caFile", ""),
        ca_data=b64decode(given_tls.get("caData", "")),
        cert_file=given_tls.get("certFile", ""),
        cert_data=b64decode(given_tls.get("certData", "")),
        key_file=given_tls.get("keyFile", ""),
        key_data=b64decode(given_tls.get("keyData", "")),
    )
    _check_tls(tls, path)
    return tls


def _check_tls(tls: ExtenderTls, path: str) -> None:
    """Files that are not there, or hold something else, are told now and not with the first pod."""
    # TLS is imported only where it is used.
    from kubescene.scheduler.extenders.tls import tls_context

    try:
        tls_context(tls)
    except (OSError, ValueError) as error:
        text = f"couldn't build extenders: {error}"
        raise SchedulerConfigurationError(text, f"{path}.tlsConfig") from None


def ignore_managed(configuration: JsonObject) -> None:
    """Resources that extenders look after replace those that NodeResourcesFit ignores (X-11)."""
    ignored = [
        resource["name"]
        for extender in configuration.get("extenders") or ()
        for resource in extender.get("managedResources") or ()
        if resource.get("ignoredByScheduler")
    ]
    if not ignored:
        return
    for index, profile in enumerate(configuration["profiles"]):
        found = [each for each in profile["pluginConfig"] if each["name"] == "NodeResourcesFit"]
        if not found:
            text = "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
            raise SchedulerConfigurationError(text, f"profiles[{index}].pluginConfig")
        found[0]["args"] = {**found[0]["args"], "ignoredResources": ignored}
