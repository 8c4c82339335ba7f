"""The ``extenders`` of a configuration."""

from collections.abc import Sequence

from kubescene.errors import SchedulerConfigurationError
from kubescene.scheduler.extenders import Extender, ExtenderVerb
from kubescene.types import JsonObject

_VERBS = {f"{verb}Verb": verb for verb in ExtenderVerb}


def make_extenders(extenders: Sequence[JsonObject]) -> tuple[Extender, ...]:
    """An extender goes by the address under which it is reached."""
    return tuple(
        Extender(
            each.get("urlPrefix", ""),
            frozenset(verb for field, verb in _VERBS.items() if each.get(field)),
            each.get("weight", 0),
            each.get("ignorable", False),
            frozenset(resource["name"] for resource in each.get("managedResources") or ()),
        )
        for each in extenders
    )


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
