"""Dead letters: lists and resends messages that a group has failed to consume too often.

Source: `DlqMessageController` of the dashboard, `DefaultMQPushConsumerImpl`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from typing import Any

from rmqfast.admin.admin_client import DLQ_PREFIX, RETRY_PREFIX, SLOW, AdminClient
from rmqfast.admin.groups import Groups
from rmqfast.admin.messages import LATEST
from rmqfast.admin.pulls import PULL_SIZE, WHOLE, pull
from rmqfast.admin.topics import TopicOffset, Topics
from rmqfast.arguments import Time, milliseconds_of
from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.message import Message
from rmqfast.remoting import ResponseCode

#: Properties dropped when a dead letter is resent, since they count its attempts and delays.
_NOT_KEPT = frozenset(
    {
        "CONSUME_START_TIME",
        "DELAY",
        "MAX_OFFSET",
        "MAX_RECONSUME_TIMES",
        "MIN_OFFSET",
        "REAL_QID",
        "REAL_TOPIC",
        "RECONSUME_TIME",
        "TRAN_MSG",
        "WAIT",
    }
)


class DeadLetters:
    """`admin.dead_letters`: lists and resends dead letters of a group."""

    def __init__(self, client: AdminClient, topics: Topics, groups: Groups) -> None:
        self._client, self._topics, self._groups = client, topics, groups

    def of_group(
        self,
        group: str,
        *,
        max_messages: int | None = 64,
        begin_timestamp: Time = 0,
        end_timestamp: Time = LATEST,
    ) -> list[Any]:
        """Lists the dead letters of a group, including those that were resent. For each broker, the oldest come first.

        Args:
            group: The group; `ResponseError` 17 if it does not exist.
            max_messages: Limit over all brokers; `None` for all, which must fit into memory.
            begin_timestamp: Earliest store time of the dead letter, as in `MessageStore.scan`.
            end_timestamp: Latest store time.

        Returns:
            Messages of the topic `%DLQ%<group>`. Their property `RETRY_TOPIC` names the original topic.

        Example:
            >>> import rmqfast
            >>> with rmqfast.EmbeddedCluster() as cluster, rmqfast.Admin(name_server=cluster.name_server) as admin:
            ...     admin.create_group("cashiers")
            ...     admin.dead_letters.of_group("cashiers")
            []
        """
        try:
            rows = self._topics.status(DLQ_PREFIX + group)
        except ResponseError as error:
            # Brokers create the dead-letter topic with the first dead letter of the group.
            if error.code != ResponseCode.TOPIC_NOT_EXIST or group not in self._groups.all():
                raise
            return []
        between = milliseconds_of("begin_timestamp", begin_timestamp), milliseconds_of("end_timestamp", end_timestamp)
        letters = (each for row in rows for each in self._dead_letters_of(row, *between))
        return list(islice(letters, max_messages))

    def resend(self, message: Any) -> Any:
        """Resends a dead letter to its group as if it was never consumed. Returns the `SendResult`.

        The copy goes to the group's retry topic, so no other group receives it. Members see its original topic, keys
        and id. The dead letter itself stays until its file expires.

        Raises:
            ArgumentError: The message is no dead letter.
            CorruptError: The body of the message does not decompress.
            ClientError: No broker accepts the copy.

        Example:
            >>> import rmqfast
            >>> with rmqfast.EmbeddedCluster() as cluster, rmqfast.Admin(name_server=cluster.name_server) as admin:
            ...     admin.create_group("cashiers")
            ...     [admin.dead_letters.resend(each).queue.topic for each in admin.dead_letters.of_group("cashiers")]
            []
        """
        import_module("rmqfast.client.producer")  # the import registers the producer that `inner_producer` needs
        return self._client.instance.inner_producer.send(_copy_for_retry(message))

    def _dead_letters_of(self, row: TopicOffset, begin: int, end: int) -> Iterator[Any]:
        address = self._client.broker_of(row.topic, row.broker_name)
        offset = row.min_offset
        # `search_offset` skips older messages, so that they need not be pulled.
        if begin > 0:
            offset = max(
                offset, self._client.api.search_offset(address, row.queue, begin, timeout=self._client.timeout * SLOW)
            )
        while offset < row.max_offset:
            pulled = pull(self._client, address, row.queue, offset, WHOLE, max_messages=PULL_SIZE)
            yield from (each for each in pulled.messages if begin <= each.store_timestamp <= end)
            # Always advance, or a broker that repeats its offset would keep this loop running forever.
            offset = max(pulled.next_offset, offset + 1)


def _copy_for_retry(message: Any) -> Message:
    topic = message.properties.get("RETRY_TOPIC")
    if not message.topic.startswith(DLQ_PREFIX) or topic is None:
        raise ArgumentError(f"message: expected one of dead_letters, got {message.msg_id} of the topic {message.topic}")
    # With the old attempt counts, the copy would become a dead letter again at once.
    properties = {name: value for name, value in message.properties.items() if name not in _NOT_KEPT}
    group = message.topic.removeprefix(DLQ_PREFIX)
    return Message(RETRY_PREFIX + group, message.body, properties=properties, flag=message.flag)
