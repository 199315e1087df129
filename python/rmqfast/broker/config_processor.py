"""Answers the requests that show and change the broker's configuration.

Source: RocketMQ's `AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rmqfast._native import DataPlane
from rmqfast.broker.configuration.config import Configuration
from rmqfast.broker.topics.topic_manager import TopicManager
from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.logs import logger_of
from rmqfast.remoting import Processor, Request, RequestCode, Response, ResponseCode, properties
from rmqfast.remoting.fastjson import encode

_log = logger_of(__name__)


class ConfigProcessor:
    def __init__(
        self,
        configuration: Configuration,
        topics: TopicManager,
        data_plane: DataPlane,
        *,
        now: Callable[[], int],
        on_update: Callable[[Mapping[str, str]], object] = lambda _: None,
    ) -> None:
        self._configuration = configuration
        self._topics = topics
        self._data_plane = data_plane
        self._now = now
        self._on_update = on_update

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.UPDATE_BROKER_CONFIG: self.update_broker_config,
            RequestCode.GET_BROKER_CONFIG: self.get_broker_config,
        }

    def update_broker_config(self, request: Request) -> Response:
        """Answers request 25: changes the keys that may change at run time. Ignores other keys."""
        if not request.body:
            return Response()
        values = properties.loads_body(request.body)
        try:
            changes = self._configuration.update(values, now=self._now())
        except ArgumentError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        _log.info("%s changes the configuration: %s", request.channel.remote_address, changes)
        # Name servers store each topic's permission masked with the broker's, so register all topics again.
        if "brokerPermission" in changes:
            self._data_plane.set_permission(self._configuration.current.number("brokerPermission"))
            self._topics.next_version()
        self._on_update(changes)
        return Response()

    def get_broker_config(self, _request: Request) -> Response:
        version = encode(self._configuration.data_version.to_json()).decode()
        return Response(ext_fields={"version": version}, body=self._configuration.current.to_body())
