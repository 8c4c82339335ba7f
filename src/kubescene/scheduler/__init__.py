"""A scheduler with the extension points, decisions and messages of kube-scheduler v1.36.

Node state is columnar, plugins answer for many nodes at once, and one call of
`Scheduler.run_once` is one pop from the queue and all that follows without waiting. `interfaces`
is the plugin author's manual.
"""

from kubescene.scheduler.config import ExtensionPoint, Profile, default_profile
from kubescene.scheduler.registry import PluginRegistry, default_registry
from kubescene.scheduler.scheduler import Scheduler, kube_scheduler

__all__ = [
    "ExtensionPoint",
    "PluginRegistry",
    "Profile",
    "Scheduler",
    "default_profile",
    "default_registry",
    "kube_scheduler",
]
