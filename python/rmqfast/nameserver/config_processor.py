"""Tells and changes how the name server is set up.

Source: `DefaultRequestProcessor` of the name server.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.nameserver.config import NamesrvConfig
from rmqfast.remoting import Processor, Request, RequestCode, Response, ResponseCode, properties


class ConfigProcessor:
    """Codes 318 and 319."""

    def __init__(self, config: NamesrvConfig) -> None:
        self._config = config
        self._lock = threading.Lock()

    def processors(self) -> dict[int, Processor]:
        """Who answers which code."""
        return {RequestCode.UPDATE_NAMESRV_CONFIG: self.update, RequestCode.GET_NAMESRV_CONFIG: self.get}

    def update(self, request: Request) -> Response:
        """Changes properties.

        Source: `DefaultRequestProcessor.updateConfig`; the refusal is that of 4.9.7.
        """
        if not request.body:
            return Response()
        try:
            values = properties.loads(request.body.decode("utf-8", "replace"))
        except ArgumentError:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "string2Properties error") from None
        with self._lock:
            refused = self._config.changed(values).keys() - self._config.CHANGEABLE
            if refused:
                remark = f"a request does not change {', '.join(sorted(refused))}"
                raise ResponseError(ResponseCode.NO_PERMISSION, remark)
            self._update(values)
        return Response()

    def get(self, _request: Request) -> Response:
        """Tells all properties.

        Source: `DefaultRequestProcessor.getConfig`.
        """
        with self._lock:
            return Response(body=self._config.to_text().encode())

    def _update(self, values: Mapping[str, str]) -> None:
        try:
            self._config.update(values)
        except ArgumentError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
