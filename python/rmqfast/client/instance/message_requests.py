"""Requests about single messages.

Source: `MQClientAPIImpl.consumerSendMessageBack`, `endTransactionOneway`, `viewMessage`, `queryMessage`.
"""

from __future__ import annotations

from rmqfast.client.instance.requests import Requests, as_fields
from rmqfast.remoting import RequestCode, Response


class MessageRequests(Requests):
    """Requests about messages that are stored; records come as they are in the log."""

    def consumer_send_back(
        self,
        address: str,
        group: str,
        physical_offset: int,
        *,
        delay_level: int = 0,
        origin_message_id: str | None = None,
        origin_topic: str | None = None,
        max_reconsume_times: int | None = None,
        unit_mode: bool = False,
        timeout: float = 5.0,
    ) -> None:
        """Has a message delivered to a group once more, later.

        Args:
            address: The broker that has the message.
            group: The group.
            physical_offset: Of the message, in bytes.
            delay_level: 0 for one that grows with the times it was consumed, -1 for the dead letters.
            origin_message_id: Its id.
            origin_topic: Its topic.
            max_reconsume_times: After how many times it goes to the dead letters.
            unit_mode: Whether the consumer is of a unit.
            timeout: How long to wait for an answer, in seconds.
        """
        fields = {
            "offset": physical_offset,
            "group": group,
            "delayLevel": delay_level,
            "originMsgId": origin_message_id,
            "originTopic": origin_topic,
            "unitMode": unit_mode,
            "maxReconsumeTimes": max_reconsume_times,
        }
        self.ask(address, RequestCode.CONSUMER_SEND_MSG_BACK, fields, timeout=timeout)

    def end_transaction(
        self,
        address: str,
        group: str,
        *,
        queue_offset: int,
        physical_offset: int,
        end: int,
        message_id: str,
        transaction_id: str | None = None,
        from_check: bool = False,
        oneway: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Tells how a transaction ended.

        Args:
            address: The broker that has the half message.
            group: Of the producer.
            queue_offset: Of the half message in its queue.
            physical_offset: Of the half message, in bytes.
            end: 8 to commit, 12 to roll back, 0 where it is not known.
            message_id: The producer's id of the message.
            transaction_id: The transaction's.
            from_check: Whether the broker has asked.
            oneway: Whether not to wait for an answer.
            timeout: How long to wait for one, in seconds.
        """
        fields = {
            "producerGroup": group,
            "tranStateTableOffset": queue_offset,
            "commitLogOffset": physical_offset,
            "commitOrRollback": end,
            "fromTransactionCheck": from_check,
            "msgId": message_id,
            "transactionId": transaction_id,
        }
        if oneway:
            self.connections.send_oneway(address, RequestCode.END_TRANSACTION, as_fields(fields))
        else:
            self.ask(address, RequestCode.END_TRANSACTION, fields, timeout=timeout)

    def view_message(self, address: str, physical_offset: int, *, timeout: float | None = None) -> bytes:
        """The record of the message at an offset.

        Raises:
            ResponseError: 1, there is none.
        """
        return self.ask(address, RequestCode.VIEW_MESSAGE_BY_ID, {"offset": physical_offset}, timeout=timeout).body

    def query_message(
        self,
        address: str,
        topic: str,
        key: str,
        *,
        max_messages: int = 32,
        begin_timestamp: int = 0,
        end_timestamp: int = (1 << 63) - 1,
        is_unique_key: bool = False,
        timeout: float | None = None,
    ) -> Response:
        """The records of messages that may have a key: that two keys have one hash is for the caller to see.

        Args:
            address: The broker.
            topic: The topic.
            key: One of the keys, or the producer's id of the message.
            max_messages: How many at most.
            begin_timestamp: Stored at this time or later, in milliseconds since 1970.
            end_timestamp: Stored at this time or earlier.
            is_unique_key: Whether the key is the id of a message.
            timeout: How long to wait, in seconds.

        Raises:
            ResponseError: 22, there is none.
        """
        fields = {
            "topic": topic,
            "key": key,
            "maxNum": max_messages,
            "beginTimestamp": begin_timestamp,
            "endTimestamp": end_timestamp,
            "_UNIQUE_KEY_QUERY": is_unique_key,
        }
        return self.ask(address, RequestCode.QUERY_MESSAGE, fields, timeout=timeout)
