"""The ``extenders`` of a configuration."""

from base64 import b64decode
from collections.abc import Sequence

from kubescene.clock import SECOND
from kubescene.durations import parse_signed_duration
from kubescene.errors import SchedulerConfigurationError
from kubescene.scheduler.extenders.extenders import (
    Extender,
    ExtenderAddress,
    ExtenderTls,
    ExtenderVerb,
)
from kubescene.types import JsonObject

DEFAULT_TIMEOUT = 5 * SECOND


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
