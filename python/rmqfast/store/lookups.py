"""Look-ups: messages by queue offset, time, physical offset, key and id, as a broker finds them."""

from __future__ import annotations

import warnings
from typing import Any, Literal

from rmqfast import _native
from rmqfast.errors import ArgumentError, DamageWarning
from rmqfast.message import Damage, GetMessageResult, GetMessageStatus, MessageExt
from rmqfast.store.get_limits import GetLimits
from rmqfast.store.request import MAX_BODY_BYTES, Time, milliseconds

__all__ = ["Lookups"]


class Lookups:
    """The part of a `MessageStore` that leads to single messages."""

    def __init__(self, native: _native.Store, broker_name: str | None) -> None:
        self._native = native
        self._broker_name = broker_name

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        max_messages: int = 32,
        tags: str = "*",
        max_body_bytes: int = MAX_BODY_BYTES,
        limits: GetLimits | None = None,
    ) -> GetMessageResult:
        """Messages of a queue from an offset on, as a broker gives them to a pull.

        To read on, pass `next_begin_offset` as `offset`, whatever the status, until that is OFFSET_OVERFLOW_ONE. One
        call looks at 800 messages (at `max_messages`, if that is more) and does not go on into the queue's next file.

        Args:
            topic: The topic.
            queue_id: The queue; one that does not exist is an empty one.
            offset: Queue offset.
            max_messages: At most so many, and at most 256 KiB of them for every 32 asked for; the first one always
                fits. Up to 32 that is what a broker gives of what it has in memory; it never gives more.
            tags: Tag expression, as "A || B". The broker's part compares hashes and decides status and next offset; the
                client's part compares the tags themselves and decides `messages`.
            max_body_bytes: Bytes of a decompressed body; a larger one is None, and damage says so.
            limits: A broker's, in place of those that grow with `max_messages`: 32 messages and 256 KiB at most, and 8
                messages and 64 KiB of what lies far behind the log's end.

        Raises:
            UnknownTopicError: The store has no such topic.
            ExpressionError: `tags` does not parse.
            ArgumentError: `max_messages` is less than 1.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> result = store.get("fx_q1", 0, 1250)
            >>> result.status, len(result.messages), result.next_begin_offset
            (<GetMessageStatus.FOUND: 'FOUND'>, 9, 1259)

        Source: `DefaultMessageStore.getMessage`, `PullAPIWrapper.processPullResult`.
        """
        _check_count(max_messages)
        options = (self._broker_name, max_body_bytes)
        caps = None if limits is None else limits.completed()
        status, (next_offset, low, high), from_slave, rows, damage = self._native.get(
            (topic, queue_id), offset, max_messages=max_messages, tags=tags, options=options, limits=caps
        )
        messages = [MessageExt(**row) for row in rows]
        places = [Damage(*entry) for entry in damage]
        return GetMessageResult(GetMessageStatus(status), next_offset, low, high, messages, places, from_slave)

    def check_in_disk(self, topic: str, queue_id: int, offset: int, *, limits: GetLimits | None = None) -> bool:
        """Whether a broker would take a message to be on the disk alone, as it lies far behind the log's end.

        Args:
            topic: The topic.
            queue_id: The queue.
            offset: Queue offset; where there is no message the answer is no.
            limits: What is taken to be in memory; 40 % of this machine's memory unless given.

        Raises:
            UnknownTopicError: The store has no such topic.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.check_in_disk("fx_q1", 0, 0, limits=rmqfast.GetLimits(physical_memory=1 << 20))
            True

        Source: `DefaultMessageStore.checkInDiskByConsumeOffset`.
        """
        return self._native.check_in_disk((topic, queue_id), offset, limits=(limits or GetLimits()).completed())

    def earliest_time(self, topic: str | None = None, queue_id: int | None = None) -> int | None:
        """The store time of the first message that is still there, in milliseconds; None where there is none.

        A 4.9.4 broker says -1 for the whole store unless 8 MiB of messages stand in its first file; this does not.
        Where the first message cannot be read, the first one that can be is taken.

        Args:
            topic: Only of this topic; of the whole commit log without it.
            queue_id: Only of this queue of the topic.

        Raises:
            UnknownTopicError: The store has no such topic.
            ArgumentError: A queue without a topic.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.earliest_time(), store.earliest_time("fx_q1", 0)
            (1795231240903, 1795231240975)

        Source: `DefaultMessageStore.getEarliestMessageTime`.
        """
        if topic is None and queue_id is not None:
            raise ArgumentError(f"queue_id: expected none without a topic, got {queue_id}")
        return self._native.earliest_time(topic, queue_id)

    def offset_for_time(self, topic: str, queue_id: int, when: Time, *, rule: Literal["5.x", "4.9.4"] = "5.x") -> int:
        """The queue offset for a point in time.

        Args:
            topic: The topic.
            queue_id: The queue.
            when: Store time: milliseconds, ISO 8601, datetime.
            rule: "5.x": the first message not before `when`, the max offset where there is none, so that reading on
                from there gives all messages from `when` on and no other. "4.9.4": the message nearest to `when`, in
                the file that modification times point at, the last one for any later time; a copied store answers
                differently.

        Raises:
            UnknownTopicError: The store has no such topic.
            ArgumentError: A text that is no time, a rule that does not exist.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.offset_for_time("fx_q1", 0, "1970-01-01"), store.offset_for_time("fx_q1", 0, "2100-01-01")
            (0, 1259)

        Source: `ConsumeQueueStore.getOffsetInQueueByTime` (5.x), `ConsumeQueue.getOffsetInQueueByTime` (4.9.4).
        """
        return self._native.offset_for_time(topic, queue_id, milliseconds(when) or 0, rule=rule)

    def message_at(self, physical_offset: int, *, max_body_bytes: int = MAX_BODY_BYTES) -> MessageExt:
        """The message whose record starts at a physical offset.

        Args:
            physical_offset: Byte offset in the commit log.
            max_body_bytes: Bytes of a decompressed body; a larger one is None.

        Raises:
            CorruptError: No sound record stands there.
            ArgumentError: No file of the commit log holds the offset.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.message_at(334).topic
            'fx_q1'

        Source: `DefaultMessageStore.lookMessageByOffset`.
        """
        if physical_offset < 0:
            raise ArgumentError(f"physical offset: expected at least 0, got {physical_offset}")
        return self._messages(self._native.message_at(physical_offset, options=(self._broker_name, max_body_bytes)))[0]

    def query(
        self,
        topic: str,
        key: str,
        *,
        max_messages: int = 64,
        begin: Time | None = None,
        end: Time | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> list[MessageExt]:
        """Messages of a topic that have a key, in the order of the log.

        The index files lead there; the stretches of the log that none covers, as after a crash, are read. Unlike a
        broker's answer, each message really has the key: others of the same hash are left out.

        Args:
            topic: The topic.
            key: One of the words in KEYS, or the UNIQ_KEY.
            max_messages: At most so many, the newest.
            begin: Store time from here on: milliseconds, ISO 8601, datetime.
            end: Store time up to and with this.
            max_body_bytes: Bytes of a decompressed body; a larger one is None.

        Raises:
            UnknownTopicError: The store has no such topic.
            ArgumentError: A text that is no time, `max_messages` less than 1.

        Warns:
            DamageWarning: Bytes on the way could not be used.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> [message.physical_offset for message in store.query("fx_plain", "Aa1")]
            [2469786, 2505518]

        Source: `DefaultMessageStore.queryMessage`, `IndexService.queryOffset`, `MQAdminImpl.queryMessage`.
        """
        _check_count(max_messages)
        last = milliseconds(end)
        between = (milliseconds(begin) or 0, (1 << 63) - 1 if last is None else last)
        options = (self._broker_name, max_body_bytes)
        return self._messages(
            self._native.query(topic, key, max_messages=max_messages, between=between, options=options)
        )

    def message_by_id(
        self, message_id: str, *, topic: str | None = None, max_body_bytes: int = MAX_BODY_BYTES
    ) -> MessageExt:
        """The message with an id.

        Args:
            message_id: The broker's (`offset_msg_id`: the store host in it must be the record's) or the producer's
                (`msg_id`).
            topic: Only of this topic. It spares the search of all topics for a producer's id.
            max_body_bytes: Bytes of a decompressed body; a larger one is None.

        Raises:
            UnknownMessageError: The store has no such message.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.message_by_id("7F00000100005212000000000000014E").physical_offset
            334

        Source: `MessageDecoder.decodeMessageId`, `MQAdminImpl.viewMessage`, `queryMessageByUniqKey`.
        """
        options = (self._broker_name, max_body_bytes)
        return self._messages(self._native.message_by_id(message_id, topic=topic, options=options))[0]

    def _messages(self, found: tuple[list[dict[str, Any]], list[tuple[int, int, str, str]]]) -> list[MessageExt]:
        rows, damage = found
        if damage:
            first = Damage(*damage[0])
            text = f"{len(damage)} damaged places, the first in {first.file} at offset {first.offset}: {first.reason}"
            warnings.warn(f"{text}; MessageStore.verify lists all", DamageWarning, stacklevel=3)
        return [MessageExt(**row) for row in rows]


def _check_count(max_messages: int) -> None:
    if not 1 <= max_messages <= 1 << 20:
        raise ArgumentError(f"max_messages: expected 1 to {1 << 20}, got {max_messages}")
