"""Answers registrations of brokers, and requests for routes, brokers and topics.

Source: RocketMQ's `DefaultRequestProcessor`, `UtilAll`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace

from rmqfast.errors import RemotingProtocolError, ResponseError
from rmqfast.nameserver.config import NamesrvConfig
from rmqfast.nameserver.kv_config import NAMESPACE_ORDER_TOPIC_CONFIG, KVConfigManager
from rmqfast.nameserver.names import checked_name
from rmqfast.nameserver.register_body import RegisterBody, data_version
from rmqfast.nameserver.route_info import BrokerIdentity, RouteInfoManager
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode, fastjson

#: Ordinal of 3.0.11, the first release whose body is a RegisterBrokerBody.
_FILTER_SERVERS_SINCE = 37
_DECODE_FAILED = "Failed to decode RegisterBrokerBody"


class RegistrationProcessor:
    def __init__(self, routes: RouteInfoManager, kv_configs: KVConfigManager, now: Callable[[], int]) -> None:
        self._routes = routes
        self._kv_configs = kv_configs
        self._now = now

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.REGISTER_BROKER: self.register,
            RequestCode.UNREGISTER_BROKER: self.unregister,
            RequestCode.QUERY_DATA_VERSION: self.query_data_version,
        }

    def register(self, request: Request) -> Response:
        header = Header(request.ext_fields)
        if not _is_sum_right(header, request.body):
            return Response(ResponseCode.SYSTEM_ERROR, "crc32 not match", {})
        broker = _identity(header)
        now = self._now()
        master = self._routes.register(broker, _body(request, header, now), request.channel, now)
        if not request.channel.is_open:  # the connection may have ended before the registration
            self._routes.channel_closed(request.channel)
        fields = {}
        if master is not None:
            ha_address = master.ha_server_address
            fields = {"masterAddr": master.address} | ({} if ha_address is None else {"haServerAddr": ha_address})
        return Response(ext_fields=fields, body=self._kv_configs.table(NAMESPACE_ORDER_TOPIC_CONFIG) or b"")

    def unregister(self, request: Request) -> Response:
        self._routes.unregister(_identity(Header(request.ext_fields)))
        return Response()

    def query_data_version(self, request: Request) -> Response:
        now = self._now()
        address = Header(request.ext_fields).optional_text("brokerAddr") or ""
        try:
            version = data_version(fastjson.decode(request.body), now)
        except RemotingProtocolError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"no data version: {error}") from None
        is_changed, current = self._routes.query_data_version(address, version, now)
        body = b""
        if current is not None:
            body = fastjson.encode({"counter": current.counter, "timestamp": current.timestamp})
        return Response(ext_fields={"changed": str(is_changed).lower()}, body=body)


def _is_sum_right(header: Header, body: bytes) -> bool:
    """Whether the body matches the checksum in the header. True if there is no checksum."""
    expected = header.number("bodyCrc32", 0)
    # 0 means that the broker sent no checksum; `UtilAll.crc32` drops the sign bit.
    return expected in {0, zlib.crc32(body) & 0x7FFFFFFF}


def _identity(header: Header) -> BrokerIdentity:
    ha_address = header.optional_text("haServerAddr")
    return BrokerIdentity(
        cluster=checked_name("clusterName", header.text("clusterName")),
        broker_name=checked_name("brokerName", header.text("brokerName")),
        broker_id=header.number("brokerId"),
        address=checked_name("brokerAddr", header.text("brokerAddr")),
        ha_server_address=None if not ha_address else checked_name("haServerAddr", ha_address),
    )


def _body(request: Request, header: Header, now: int) -> RegisterBody:
    is_bare = request.version < _FILTER_SERVERS_SINCE
    try:
        return RegisterBody.of(request.body, compressed=header.flag("compressed"), bare=is_bare, now=now)
    except RemotingProtocolError as error:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"{_DECODE_FAILED}: {error}") from None


#: Ordinal of 4.9.4; older clients get numbers as keys without quotes.
_STANDARD_JSON_SINCE = 401
_FAQ = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."


class RouteProcessor:
    """Answers requests 105, 106, 205, 206, 216, 224, 304, 311 to 313 and 327."""

    def __init__(self, routes: RouteInfoManager, kv_configs: KVConfigManager, config: NamesrvConfig) -> None:
        self._routes = routes
        self._kv_configs = kv_configs
        self._config = config

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self.route_info,
            RequestCode.GET_BROKER_CLUSTER_INFO: self.cluster_info,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER: self.wipe_write_perm,
            RequestCode.ADD_WRITE_PERM_OF_BROKER: self.add_write_perm,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self.all_topics,
            RequestCode.DELETE_TOPIC_IN_NAMESRV: self.delete_topic,
            RequestCode.GET_TOPICS_BY_CLUSTER: self.topics_by_cluster,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: self.system_topics,
            RequestCode.GET_UNIT_TOPIC_LIST: self._units(unit=True, subscribed=None),
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: self._units(unit=None, subscribed=True),
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: self._units(unit=False, subscribed=True),
        }

    def route_info(self, request: Request) -> Response:
        header = Header(request.ext_fields)
        topic = header.optional_text("topic")
        route = None if topic is None else self._routes.pickup(topic)
        if route is None:
            remark = f"No topic route info in name server for the topic: {fastjson.java_text(topic)}{_FAQ}"
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, remark)
        if self._config.order_message_enable:
            route = replace(route, order_topic_conf=self._kv_configs.get(NAMESPACE_ORDER_TOPIC_CONFIG, topic))
        standard = request.version >= _STANDARD_JSON_SINCE or header.flag("acceptStandardJsonOnly")
        return Response(body=route.encode(standard=standard))

    def cluster_info(self, _request: Request) -> Response:
        return Response(body=fastjson.encode(self._routes.cluster_info()))

    def wipe_write_perm(self, request: Request) -> Response:
        name = Header(request.ext_fields).optional_text("brokerName")
        return Response(ext_fields={"wipeTopicCount": str(self._routes.wipe_write_perm(name or ""))})

    def add_write_perm(self, request: Request) -> Response:
        name = Header(request.ext_fields).optional_text("brokerName")
        return Response(ext_fields={"addTopicCount": str(self._routes.add_write_perm(name or ""))})

    def all_topics(self, _request: Request) -> Response:
        return _topic_list(self._routes.all_topics())

    def delete_topic(self, request: Request) -> Response:
        header = Header(request.ext_fields)
        self._routes.delete_topic(header.optional_text("topic") or "", header.optional_text("clusterName"))
        return Response()

    def topics_by_cluster(self, request: Request) -> Response:
        return _topic_list(self._routes.topics_of_cluster(Header(request.ext_fields).optional_text("cluster") or ""))

    def system_topics(self, _request: Request) -> Response:
        names, address = self._routes.system_topics()
        return _topic_list(names, address)

    def _units(self, *, unit: bool | None, subscribed: bool | None) -> Callable[[Request], Response]:
        def answer(_request: Request) -> Response:
            return _topic_list(self._routes.unit_topics(unit=unit, subscribed=subscribed))

        return answer


def _topic_list(topics: list[str], broker_address: str | None = None) -> Response:
    return Response(body=fastjson.encode({"brokerAddr": broker_address, "topicList": topics}))
