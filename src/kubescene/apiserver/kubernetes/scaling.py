"""The ``scale`` subresource over HTTP: the registry decides, the ``Scale`` is shown."""

from collections.abc import Callable
from dataclasses import dataclass

from kubescene.api.records import Record
from kubescene.api.scheme import SCALE
from kubescene.apiserver.kubernetes.field_validation import check_kind
from kubescene.apiserver.kubernetes.paths import Target
from kubescene.apiserver.kubernetes.writes import Writes, as_object, check_name, write_options
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, json_response
from kubescene.errors import BadRequestError
from kubescene.registry.subresources.scaling import SCALE_TYPE, Scales
from kubescene.types import JsonObject


@dataclass(frozen=True, slots=True)
class Scaling:
    """Serves ``scale``."""

    verbs: Writes

    async def serve(self, target: Target, request: Request) -> Response:
        if request.method == "GET":
            return json_response(
                self._scales.get(target.resource_type, target.namespace, target.name)
            )
        change = self._update if request.method == "PUT" else self._patch
        record = await self.verbs.engine.submit(await change(target, request))
        return json_response(self._scales.view(record, target.resource_type))

    async def _update(self, target: Target, request: Request) -> Callable[[], Record]:
        scale, options = await self._read(target, request), write_options(request)
        return lambda: self._scales.update(
            request.actor,
            target.resource_type,
            target.namespace,
            target.name,
            scale,
            options=options,
        )

    async def _patch(self, target: Target, request: Request) -> Callable[[], Record]:
        patch_type, patch = await self.verbs.read_patch(request, SCALE_TYPE)
        options = write_options(request)

        def inspect(patched: JsonObject) -> JsonObject:
            self.verbs.fields.check_patched(patched, SCALE_TYPE, request, patch)
            return self.verbs.fields.decoded(patched, SCALE_TYPE, request)

        return lambda: self._scales.patch(
            request.actor,
            target.resource_type,
            target.namespace,
            target.name,
            patch,
            patch_type,
            options=options,
            inspect=inspect,
        )

    async def _read(self, target: Target, request: Request) -> JsonObject:
        body = as_object((await self.verbs.read_body(request)).value)
        scale = self.verbs.fields.decoded(check_kind(body, SCALE.gvk), SCALE_TYPE, request)
        if not isinstance(scale.get("metadata"), dict):
            raise BadRequestError("name must be provided")
        check_name(scale, target)
        return scale

    @property
    def _scales(self) -> Scales:
        return self.verbs.registry.scales
