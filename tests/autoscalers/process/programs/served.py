"""``served.py horizontal|vertical|concurrency``: our own autoscalers, served."""

import sys

from kubescene.autoscalers import AutoscalerPlugin, serve
from kubescene.autoscalers.concurrency import ConcurrencyPlugin
from kubescene.autoscalers.horizontal.plugin import HorizontalPlugin
from kubescene.autoscalers.vertical.plugin import VerticalPlugin

KINDS: dict[str, type[AutoscalerPlugin]] = {
    "horizontal": HorizontalPlugin,
    "vertical": VerticalPlugin,
    "concurrency": ConcurrencyPlugin,
}

serve(KINDS[sys.argv[1]]())
