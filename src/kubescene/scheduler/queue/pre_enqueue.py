"""PreEnqueue: who may enter the active queue."""

import logging
from collections.abc import Mapping

from kubescene.errors import PluginError
from kubescene.scheduler.framework.extensions import Extension
from kubescene.scheduler.framework.guarded_calls import PluginErrors
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.pods import PodInfo

_log = logging.getLogger(__name__)


class PreEnqueueChecks:
    """Asks the PreEnqueue plugins of a pod's profile."""

    def __init__(self, frameworks: Mapping[str, Framework], plugin_errors: PluginErrors) -> None:
        self._frameworks = frameworks
        self._plugin_errors = plugin_errors

    def __call__(self, pod: PodInfo) -> Status:
        for extension in self._frameworks[pod.scheduler_name].pre_enqueue:
            try:
                status: Status = extension.call(pod)
            except PluginError as error:
                status = self._kept_out(extension, pod, error)
            if status is not SUCCESS and not status.ok:
                return status.by(extension.name)
        return SUCCESS

    def _kept_out(self, extension: Extension, pod: PodInfo, error: PluginError) -> Status:
        """A plugin that cannot say lets nobody in."""
        self._plugin_errors.bear(error)
        _log.warning("%s keeps %s out of the queue: %s", extension.name, pod.key, error)
        return Status.error(str(error))
