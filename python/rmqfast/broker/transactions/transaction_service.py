"""Asks producers about half messages whose transactions did not end.

Source: RocketMQ's `TransactionalMessageServiceImpl`, `AbstractTransactionalMessageCheckListener`.
"""

from __future__ import annotations

from collections.abc import Callable

from rmqfast._native import DataPlane
from rmqfast.broker.messages.appending import status_of
from rmqfast.broker.messages.send_back import MakeTopic
from rmqfast.broker.messages.stored_message import StoredMessage
from rmqfast.broker.topics.topic_manager import HALF_TOPIC, OP_TOPIC, TRANS_CHECK_MAX_TIME_TOPIC
from rmqfast.broker.transactions.check_round import (
    CheckRound,
    Step,
    TransactionCheckOptions,
    is_spent,
    next_step,
    with_check_counted,
)
from rmqfast.broker.transactions.half_messages import PREPARED_QUEUE_OFFSET, HalfMessages, has_target
from rmqfast.errors import FlushTimeoutError, RmqError
from rmqfast.logs import logger_of
from rmqfast.remoting import Channel, RequestCode
from rmqfast.remoting.rate_limit import limited
from rmqfast.store.writer import AppendResult
from rmqfast.system import monotonic

_log = limited(logger_of(__name__))

#: RocketMQ's own group, so that a Java broker can continue from here and vice versa.
CHECK_GROUP = "CID_RMQ_SYS_TRANS"
#: Time limit per queue, `MAX_PROCESS_TIME_LIMIT` of RocketMQ.
_SECONDS_OF_A_QUEUE = 60


class TransactionService:
    """Asks producers about half messages. Call `run_once` every 60 seconds (`transactionCheckInterval`).

    Changed `options` count from the next run on.
    """

    def __init__(
        self,
        half: HalfMessages,
        data_plane: DataPlane,
        *,
        available_channel: Callable[[str], Channel | None],
        make_topic: MakeTopic,
        options: TransactionCheckOptions | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._half = half
        self._data_plane = data_plane
        self._available_channel = available_channel
        self._make_topic = make_topic
        self.options: TransactionCheckOptions = options or TransactionCheckOptions()
        self._clock = clock

    def run_once(self, now: int) -> int:
        """Checks half messages, from where the last call stopped. Returns how many producers were asked."""
        topic = self._make_topic(HALF_TOPIC, 1, 6, 0)
        return 0 if topic is None else sum(self._check_queue(queue, now) for queue in range(topic.read_queue_nums))

    def _check_queue(self, queue_id: int, now: int) -> int:
        first, op_first = self._next_offset(HALF_TOPIC, queue_id), self._next_offset(OP_TOPIC, queue_id)
        check_round = CheckRound(self._half, queue_id, first, op_first)
        check_round.read_operations()
        offset, ask_count = self._walk(check_round, first, now)
        for topic, before, after in ((HALF_TOPIC, first, offset), (OP_TOPIC, op_first, check_round.operations_done())):
            if after != before:
                self._data_plane.commit_offset(CHECK_GROUP, topic, queue_id, after)
        return ask_count

    def _walk(self, check_round: CheckRound, offset: int, now: int) -> tuple[int, int]:
        """Visits the half messages of a queue. Returns the last position, and how many producers were asked."""
        deadline, ask_count = self._clock() + _SECONDS_OF_A_QUEUE, 0
        while self._clock() < deadline:
            if check_round.take_removed(offset):
                offset += 1
                continue
            next_half = check_round.read_half(offset)
            if next_half.is_at_end:
                break
            if not next_half.messages or next_half.messages[0].queue_offset != offset:
                # Messages in between have expired, and the next half message may have ended already.
                offset = next_half.messages[0].queue_offset if next_half.messages else next_half.next_offset
                continue
            step = self._take(next_half.messages[0], check_round, now)
            if step is Step.WAIT:
                break
            if step is not Step.MORE_OPERATIONS:
                offset += 1
                ask_count += step is Step.ASK
        return offset, ask_count

    def _take(self, half: StoredMessage, check_round: CheckRound, now: int) -> Step:
        """Decides the next step for a half message, performs it and returns it."""
        step = next_step(half, check_round.last_operation, now, self.options)
        if step is Step.GIVE_UP:
            return step if self._give_up(half) else Step.WAIT
        if step is Step.SPARE and not check_round.take_removed_before(half):
            prepared = half.properties.get(PREPARED_QUEUE_OFFSET) or str(half.queue_offset)
            spared = with_check_counted(half) | {"WAIT": "false", PREPARED_QUEUE_OFFSET: prepared}
            return step if self._put_back(half, spared)[0] else Step.WAIT
        if step is Step.ASK:
            is_stored, place = self._put_back(half, with_check_counted(half))
            if place is not None:
                self._ask(half, place)
            return step if is_stored else Step.WAIT
        if step is Step.MORE_OPERATIONS:
            had_some = check_round.last_operation is not None
            # No more operations, and not old enough: RocketMQ polls until it is, here the next round checks again.
            return step if check_round.read_operations() or had_some else Step.WAIT
        return step

    def _give_up(self, half: StoredMessage) -> bool:
        _log.error("half message %s is given up: %s", half.offset_msg_id, dict(half.properties))
        self._make_topic(TRANS_CHECK_MAX_TIME_TOPIC, 1, 6, 0)
        properties = half.properties if is_spent(half, self.options) else with_check_counted(half)
        return self._half.give_up(half, properties)

    def _put_back(self, half: StoredMessage, properties: dict[str, str]) -> tuple[bool, AppendResult | None]:
        try:
            return True, self._half.put_back(half, properties)
        except FlushTimeoutError:
            # Stored, but at an unknown place, so the next round asks.
            return True, None
        except RmqError as error:
            _log.error("half message %d is not put back: %s", half.queue_offset, status_of(error))
            return False, None

    def _ask(self, half: StoredMessage, place: AppendResult) -> None:
        group = half.properties.get("PGROUP")
        channel = self._available_channel(group) if group and has_target(half) else None
        if channel is None:
            _log.warning("nobody of producer group %r is there to be asked for a transaction", group)
            return
        # The producer gets the message under its target topic, with its new place.
        copy = half._replace(
            topic=half.properties["REAL_TOPIC"],
            queue_id=int(half.properties["REAL_QID"]),
            queue_offset=place.queue_offset,
            physical_offset=place.physical_offset,
            properties=with_check_counted(half) | {"WAIT": "false"},
        )
        header = {
            "tranStateTableOffset": str(place.queue_offset),
            "commitLogOffset": str(place.physical_offset),
            "offsetMsgId": place.offset_msg_id,
        }
        if half.uniq_key is not None:
            header |= {"msgId": half.uniq_key, "transactionId": half.uniq_key}
        channel.send_oneway(RequestCode.CHECK_TRANSACTION_STATE, header, copy.encode())

    def _next_offset(self, topic: str, queue_id: int) -> int:
        offset = self._data_plane.offset(CHECK_GROUP, topic, queue_id)
        return self._half.low(topic, queue_id) if offset == -1 else offset
