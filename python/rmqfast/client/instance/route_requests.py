"""What name servers are asked.

Source: `MQClientAPIImpl.getTopicRouteInfoFromNameServer`, `getBrokerClusterInfo`, `getTopicListFromNameServer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rmqfast.client.instance.requests import Requests
from rmqfast.remoting import RequestCode
from rmqfast.remoting.protocol.broker_data import BrokerData
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData

_MOST = 1_000_000
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """All clusters and brokers.

    Attributes:
        brokers: By name.
        clusters: Names of brokers by that of the cluster.

    Source: `ClusterInfo`.
    """

    brokers: Mapping[str, BrokerData]
    clusters: Mapping[str, tuple[str, ...]]


class RouteRequests(Requests):
    """Requests to name servers."""

    def topic_route(self, topic: str, *, timeout: float | None = None) -> TopicRouteData:
        """Where a topic is.

        Raises:
            ResponseError: 17, nobody has it.
            ClientError: There is no name server.
            RemotingError: None answers.
        """
        fields = {"topic": topic}
        return TopicRouteData.of_body(
            self.ask_name_server(RequestCode.GET_ROUTEINFO_BY_TOPIC, fields, timeout=timeout).body
        )

    def cluster_info(self, *, timeout: float | None = None) -> ClusterInfo:
        """All clusters and brokers."""
        body = self.ask_name_server(RequestCode.GET_BROKER_CLUSTER_INFO, timeout=timeout).body
        members = JsonObject.of_body(body, most=_MOST_BYTES)
        brokers, clusters = members.object("brokerAddrTable"), members.object("clusterAddrTable")
        return ClusterInfo(
            {} if brokers is None else {name: BrokerData.from_json(brokers.member(name)) for name in brokers.names()},
            {} if clusters is None else {name: clusters.texts(name, most=_MOST) for name in clusters.names()},
        )

    def all_topics(self, *, timeout: float | None = None) -> tuple[str, ...]:
        """All topics, those of the system, of retries and of dead letters, too."""
        body = self.ask_name_server(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, timeout=timeout).body
        return JsonObject.of_body(body, most=_MOST_BYTES).texts("topicList", most=_MOST)

    def topics_of_cluster(self, cluster: str, *, timeout: float | None = None) -> tuple[str, ...]:
        """The topics of a cluster; none where it is not known."""
        fields = {"cluster": cluster}
        body = self.ask_name_server(RequestCode.GET_TOPICS_BY_CLUSTER, fields, timeout=timeout).body
        return JsonObject.of_body(body, most=_MOST_BYTES).texts("topicList", most=_MOST)
