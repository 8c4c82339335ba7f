"""MetricSeries that make no sense say so in their status."""

from kubescene.client import ObjectRef, Reader
from kubescene.controllers.authoring import ObjectReconciler
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Patch, Plan
from kubescene.errors import BadRequestError
from kubescene.usage.series import DEFINITION, METRIC_SERIES, read_series


class MetricSeriesReconciler(ObjectReconciler):
    """Reads every series once, and tells what is wrong with it."""

    name = "metricseries"
    kinds = (METRIC_SERIES,)
    definitions = (DEFINITION,)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        del now
        ref = ObjectRef(METRIC_SERIES, key.name, key.namespace)
        try:
            series = reader.find(ref)
        except BadRequestError:  # somebody has deleted the definition
            return NOTHING
        if series is None:
            return NOTHING
        message = None
        try:
            read_series(series)
        except ValueError as error:
            message = str(error)
        if (series.get("status") or {}).get("message") == message:
            return NOTHING
        return Plan([Patch(ref, {"status": {"message": message}}, subresource="status")])
