"""The topics that a producer sends to: their queues, and how one is made.

Source: `MQAdminImpl`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rmqfast.client.instance.namespaces import wrap
from rmqfast.client.instance.topic_publish_info import publish_info_of
from rmqfast.client.instance.validators import check_topic
from rmqfast.client.producer.sending import Sending
from rmqfast.errors import ClientError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode
from rmqfast.remoting.protocol.broker_data import MASTER_ID

_CREATE_TIMEOUT = 5.0
_READ_WRITE = 6


class PublishTopics(Sending):
    """The part of a producer that asks for topics and makes them."""

    def fetch_publish_message_queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that may be written to, as a name server has them now.

        Raises:
            ClientError: Nobody has the topic, or no name server answers.

        Source: `MQAdminImpl.fetchPublishMessageQueues`.
        """
        self._check_running()
        check_topic(topic)
        wrapped = wrap(self._config.namespace, topic)
        self._instance.update_route(wrapped)
        route = self._instance.routes.get(wrapped)
        if route is None:
            raise self._instance.no_route_error(wrapped)
        return [self._shown(queue) for queue in publish_info_of(wrapped, route).queues]

    def create_topic(
        self,
        topic: str,
        queues: int = 4,
        *,
        key: str | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """Makes a topic at all brokers that have another one.

        Args:
            topic: Its name.
            queues: How many it gets at each broker, to read from and to write to.
            key: The topic whose brokers get it; the one that new topics are made after unless given.
            attributes: Further header fields, as `topicSysFlag`.

        Raises:
            ClientError: Nobody has `key`, or a broker does not make the topic.

        Source: `MQAdminImpl.createTopic`.
        """
        self._check_running()
        check_topic(topic)
        source = key or self.options.create_topic_key
        self._instance.update_route(source)
        route = self._instance.routes.get(source)
        if route is None:
            raise self._instance.no_route_error(source)
        fields = {
            "topic": wrap(self._config.namespace, topic),
            "defaultTopic": source,
            "readQueueNums": queues,
            "writeQueueNums": queues,
            "perm": _READ_WRITE,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": False,
            **(attributes or {}),
        }
        for broker in sorted(route.broker_datas, key=lambda each: each.broker_name):
            if MASTER_ID in broker.addresses:
                address = self._config.translated(broker.addresses[MASTER_ID])
                self._create_at(address, fields)

    def _create_at(self, address: str, fields: Mapping[str, object]) -> None:
        code = RequestCode.UPDATE_AND_CREATE_TOPIC
        try:
            self._instance.api.ask(address, code, fields, timeout=_CREATE_TIMEOUT)
        except RmqError as error:
            raise ClientError(f"no broker makes the topic: {error}") from error
