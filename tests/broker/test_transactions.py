"""The check of half messages: who is asked, when, with what; and how far it came."""

from __future__ import annotations

from typing import Any

import pytest

from rmqfast import Message, WritableStore
from rmqfast.broker.messages.stored_message import StoredMessage
from rmqfast.broker.topics.topic_manager import HALF_TOPIC, OP_TOPIC, TRANS_CHECK_MAX_TIME_TOPIC
from rmqfast.broker.transactions.check_round import TransactionCheckOptions
from rmqfast.broker.transactions.half_messages import HalfMessages
from rmqfast.broker.transactions.transaction_service import CHECK_GROUP, TransactionService
from rmqfast.errors import FlushTimeoutError, RmqError
from rmqfast.remoting import Channel
from tests.broker.client_doubles import Line, Tables, Topics
from tests.broker.memory_store import MemoryStore, records_of
from tests.broker.recorded import recorded

HOUR = 3_600_000
START = 1_800_000_000_000


class Broker:
    """Its clock is `now`; a round begins then. The store is in memory, unless a real one is given."""

    def __init__(
        self, store: MemoryStore | None = None, *, real: WritableStore | None = None, timeout: int = 6000
    ) -> None:
        self.now = START
        self.seconds = 0.0
        self.store = store or MemoryStore(lambda: self.now)
        self.offsets = Tables()
        self.channel = Line()
        self.groups: list[str] = []
        live, append = (self.store, self.store.append) if real is None else (real.live, real.append)
        self.half = HalfMessages(live, append, store_host="127.0.0.1:10911", now=lambda: self.now)
        self.topics = Topics()
        self.service = TransactionService(
            self.half,
            self.offsets.data_plane,
            available_channel=self.find,
            make_topic=self.topics.make,
            options=TransactionCheckOptions(timeout=timeout),
            clock=lambda: self.seconds,
        )

    def find(self, group: str) -> Channel | None:
        self.groups.append(group)
        return self.channel if self.channel.is_open else None

    def prepare(self, *, age: int = 0, stored: int | None = None, **properties: str) -> StoredMessage:
        """A half message, born `age` ago."""
        given = {"REAL_TOPIC": "orders", "UNIQ_KEY": "U", "PGROUP": "p", "WAIT": "true", "REAL_QID": "3"} | properties
        now, self.now = self.now, self.now - age if stored is None else stored
        message = Message(HALF_TOPIC, b"paid", properties=given, flag=5, born_timestamp=now - age)
        place = self.store.deliver(message, born_host="10.9.9.9:1")
        self.now = now
        return StoredMessage.parse(self.store.records[place.physical_offset])

    def run(self, after: int = 0) -> int:
        self.now += after
        return self.service.run_once(self.now)

    @property
    def progress(self) -> tuple[int, int]:
        return tuple(max(self.offsets.offset(CHECK_GROUP, topic, 0), 0) for topic in (HALF_TOPIC, OP_TOPIC))  # type: ignore[return-value]

    @property
    def halves(self) -> list[dict[str, str]]:
        return [one.properties for one in self.store.messages(HALF_TOPIC)]


def test_a_producer_is_asked_and_the_message_waits_at_the_end_of_its_queue() -> None:
    broker = Broker()
    broker.prepare(age=6001)
    assert broker.run() == 1
    ((code, fields, body),) = broker.channel.sent
    again = broker.store.messages(HALF_TOPIC)[1]
    assert (code, broker.groups) == (39, ["p"])
    assert fields == {
        "tranStateTableOffset": "1",
        "commitLogOffset": str(again.physical_offset),
        "offsetMsgId": again.offset_msg_id,
        "msgId": "U",
        "transactionId": "U",
    }
    asked = StoredMessage.parse(body)
    assert (asked.topic, asked.queue_id, asked.queue_offset) == ("orders", 3, 1)
    assert (asked.physical_offset, asked.flag, asked.store_timestamp) == (again.physical_offset, 5, START - 6001)
    assert (asked.properties["WAIT"], asked.properties["TRANSACTION_CHECK_TIMES"]) == ("false", "1")
    assert (again.properties["WAIT"], again.properties["TRANSACTION_CHECK_TIMES"], again.flag) == ("true", "1", 0)
    assert broker.progress == (1, 0)


def test_the_checks_of_a_real_broker_are_sent_again_byte_for_byte() -> None:
    checks = recorded(39)
    first = StoredMessage.parse(bytes.fromhex(checks[0]["body"]))
    # that broker waited for less than the default
    broker = Broker(MemoryStore(lambda: broker.now, "127.0.0.1:25010"), timeout=1000)
    broker.store.end = 3584
    broker.store.queues[HALF_TOPIC, 0] = [(0, 0, 0)] * 2
    broker.offsets.commit_offset(CHECK_GROUP, HALF_TOPIC, 0, 2)
    properties = dict(first.properties) | {"WAIT": "true"}
    del properties["TRANSACTION_CHECK_TIMES"]
    ordered = {name: properties[name] for name in first.properties if name in properties}
    broker.now = first.store_timestamp
    message = Message(HALF_TOPIC, first.body, properties=ordered, flag=first.flag, born_timestamp=first.born_timestamp)
    broker.store.deliver(message, born_host=first.born_host)
    for at, check in enumerate(checks):
        # the next message was stored while this one was checked
        following = checks[at + 1]["body"] if at + 1 < len(checks) else None
        broker.now = broker.now + 60_000 if following is None else _store_time(following)
        broker.service.run_once(broker.now)
        code, fields, body = broker.channel.sent[at]
        assert (code, fields, body.hex()) == (39, check["fields"], check["body"])
    assert len(checks) == len(broker.channel.sent) == 3


def _store_time(body: str) -> int:
    return StoredMessage.parse(bytes.fromhex(body)).store_timestamp


def test_a_golden_queue_of_half_messages_is_checked_as_the_real_broker_did(
    golden_store: Any,
) -> None:
    wanted = {}
    broker = Broker(MemoryStore(lambda: broker.now, "127.0.0.1:21130"))
    for one, data in records_of((golden_store("delaytx-4.9.4") / "commitlog").iterdir()):
        if one.topic == HALF_TOPIC and "TRANSACTION_CHECK_TIMES" in one.properties:
            wanted[one.queue_offset] = one
        elif one.topic in {HALF_TOPIC, OP_TOPIC}:
            broker.store.put_record(one, data)
    broker.now = min(one.store_timestamp for one in wanted.values())
    assert broker.service.run_once(broker.now) == 4
    found = broker.store.messages(HALF_TOPIC)[12:]
    assert [one.property_bytes for one in found] == [one.property_bytes for one in wanted.values()]
    # config/consumerOffset.json says so, too
    assert broker.progress == (12, 8)


def test_a_message_that_is_young_holds_up_those_behind_it() -> None:
    broker = Broker()
    broker.prepare(age=5999)
    broker.prepare(age=HOUR)
    assert (broker.run(), broker.progress) == (0, (0, 0))
    assert broker.run(after=2) == 2


def test_what_was_stored_since_the_round_began_is_left_for_the_next_one() -> None:
    broker = Broker()
    broker.prepare(age=HOUR, stored=START)
    assert broker.run() == 0
    assert broker.run(after=1) == 1


def test_a_message_of_the_future_is_asked_for_at_once() -> None:
    broker = Broker()
    broker.prepare(age=-HOUR, stored=START - 1)
    assert broker.run() == 1


def test_operations_are_done_up_to_the_first_that_is_not_used() -> None:
    broker = Broker()
    first, second, third = (broker.prepare(age=age) for age in (HOUR, 1, HOUR))
    broker.half.remove(third)
    broker.half.remove(first)
    assert (broker.run(), broker.progress) == (0, (1, 0))
    broker.half.remove(second)
    assert (broker.run(), broker.progress) == (0, (3, 3))


def test_a_producer_is_asked_15_times_and_then_the_message_is_given_up() -> None:
    broker = Broker()
    broker.prepare(age=HOUR)
    assert [broker.run(after=60_000) for _ in range(17)] == [1] * 15 + [0] * 2
    (given_up,) = broker.store.messages(TRANS_CHECK_MAX_TIME_TOPIC)
    assert given_up.properties["TRANSACTION_CHECK_TIMES"] == "15"
    assert (given_up.body, str(given_up.born_host)) == (b"paid", "10.9.9.9:1")
    assert broker.topics.table[TRANS_CHECK_MAX_TIME_TOPIC].read_queue_nums == 1
    assert broker.progress == (16, 0)


def test_a_message_older_than_messages_get_is_given_up() -> None:
    broker = Broker()
    broker.prepare(age=72 * HOUR)
    broker.prepare(age=72 * HOUR + 1)
    assert (broker.run(), broker.progress) == (1, (2, 0))
    (given_up,) = broker.store.messages(TRANS_CHECK_MAX_TIME_TOPIC)
    assert (given_up.flag, given_up.properties["TRANSACTION_CHECK_TIMES"]) == (5, "1")


def test_a_message_that_cannot_be_put_aside_is_not_lost() -> None:
    broker = Broker()
    broker.prepare(age=73 * HOUR)
    broker.store.refusals = [RmqError("full")]
    assert (broker.run(), broker.progress) == (0, (0, 0))
    assert (broker.run(), broker.progress) == (0, (1, 0))


def test_a_message_with_more_time_is_put_back_and_not_asked_for() -> None:
    broker = Broker()
    broker.prepare(age=10_000, CHECK_IMMUNITY_TIME_IN_SECONDS="60")
    broker.prepare(age=10_000)
    assert broker.run() == 1
    spared = broker.halves[2]
    assert spared["TRAN_PREPARED_QUEUE_OFFSET"] == "0"
    assert (spared["WAIT"], spared["TRANSACTION_CHECK_TIMES"]) == ("false", "1")
    assert broker.progress == (2, 0)
    assert broker.run(after=51_000) == 2
    assert broker.halves[4]["TRAN_PREPARED_QUEUE_OFFSET"] == "0"


def test_a_message_that_was_put_back_ends_with_the_one_it_was() -> None:
    broker = Broker()
    half = broker.prepare(age=10_000, CHECK_IMMUNITY_TIME_IN_SECONDS="60")
    broker.run()
    assert broker.progress == (1, 0)
    broker.half.remove(half)
    # an operation of a message before the queue's first one is used up by itself
    assert (broker.run(after=1), broker.progress[1]) == (0, 1)


def test_an_operation_for_where_a_message_was_prepared_ends_it() -> None:
    broker = Broker()
    broker.prepare(age=10_000, CHECK_IMMUNITY_TIME_IN_SECONDS="60", TRAN_PREPARED_QUEUE_OFFSET="1")
    broker.half.remove(broker.prepare(age=1))
    assert (broker.run(), broker.progress) == (0, (1, 1))
    assert len(broker.halves) == 2


def test_a_message_that_was_prepared_nowhere_is_not_put_back() -> None:
    broker = Broker()
    broker.prepare(age=10_000, CHECK_IMMUNITY_TIME_IN_SECONDS="60", TRAN_PREPARED_QUEUE_OFFSET="-1")
    assert (broker.run(), broker.progress, len(broker.halves)) == (0, (0, 0), 1)


def test_a_message_as_old_as_the_time_given_waits_unless_operations_are_ahead_of_it() -> None:
    broker = Broker()
    broker.prepare(age=6000)
    assert (broker.run(), broker.progress) == (0, (0, 0))
    for ahead, asked in ((6000, 0), (6001, 1)):
        operation = Message(OP_TOPIC, b"99", properties={"TAGS": "d"}, born_timestamp=START + ahead)
        broker.store.deliver(operation)
        assert broker.run() == asked


def test_a_check_that_begins_anew_begins_at_the_first_message() -> None:
    broker = Broker()
    halves = [broker.prepare(age=1) for _ in range(5)]
    for half in halves[:2]:
        broker.half.remove(half)
    broker.store.forget(HALF_TOPIC, 0, 3)
    assert (broker.run(), broker.progress) == (0, (0, 2))


@pytest.mark.parametrize(("text", "asked"), [("-1", 1), ("x", 1), ("7", 0), ("99999999999999999999", 1)])
def test_an_odd_time_is_the_usual_one(text: str, asked: int) -> None:
    broker = Broker()
    broker.prepare(age=6500, CHECK_IMMUNITY_TIME_IN_SECONDS=text)
    assert broker.run() == asked


def test_nobody_to_ask_is_no_error() -> None:
    broker = Broker()
    broker.channel.close()
    broker.prepare(age=HOUR)
    assert (broker.run(), broker.channel.sent, broker.progress) == (1, [], (1, 0))


def test_a_message_without_a_group_or_a_target_asks_nobody() -> None:
    broker = Broker()
    broker.prepare(age=HOUR, PGROUP="")
    broker.prepare(age=HOUR, REAL_QID="x")
    assert (broker.run(), broker.channel.sent, broker.groups) == (2, [], [])


def test_what_cannot_be_put_back_is_tried_in_the_next_round() -> None:
    broker = Broker()
    broker.prepare(age=HOUR)
    broker.store.refusals = [RmqError("full")]
    assert (broker.run(), broker.progress) == (0, (0, 0))
    assert (broker.run(), broker.progress) == (1, (1, 0))


def test_what_is_put_back_and_not_yet_on_the_disk_is_not_put_back_again() -> None:
    broker = Broker()
    broker.prepare(age=HOUR)
    broker.store.refusals = [FlushTimeoutError("slow")]
    assert (broker.run(), broker.progress, broker.channel.sent) == (1, (1, 0), [])


def test_messages_that_retention_took_are_passed() -> None:
    broker = Broker()
    for _ in range(5):
        broker.prepare(age=HOUR)
    broker.offsets.commit_offset(CHECK_GROUP, HALF_TOPIC, 0, 1)
    broker.store.forget(HALF_TOPIC, 0, 3)
    assert (broker.run(), broker.progress) == (2, (5, 0))


def test_an_offset_behind_the_end_goes_back_to_it() -> None:
    broker = Broker()
    broker.prepare(age=HOUR)
    broker.offsets.commit_offset(CHECK_GROUP, HALF_TOPIC, 0, 50)
    assert (broker.run(), broker.progress) == (0, (1, 0))


def test_operations_that_retention_took_are_passed() -> None:
    broker = Broker()
    halves = [broker.prepare(age=HOUR) for _ in range(4)]
    for half in halves:
        broker.half.remove(half)
    broker.store.forget(OP_TOPIC, 0, 2)
    broker.offsets.commit_offset(CHECK_GROUP, HALF_TOPIC, 0, 2)
    broker.offsets.commit_offset(CHECK_GROUP, OP_TOPIC, 0, 0)
    assert (broker.run(), broker.progress) == (0, (4, 4))


def test_a_strange_operation_ends_nothing() -> None:
    broker = Broker()
    broker.prepare(age=HOUR)
    for body, tags in ((b"x", "d"), (b"\xff", "d"), (b"0", "other"), (b"9" * 400, "d")):
        broker.store.deliver(Message(OP_TOPIC, body, properties={"TAGS": tags}))
    assert broker.run() == 1


def test_a_round_ends_after_a_minute() -> None:
    broker = Broker()
    for _ in range(5):
        broker.prepare(age=HOUR)
    send = broker.channel.send_oneway

    def slowly(*given: Any) -> None:
        broker.seconds += 25
        send(*given)

    broker.channel.send_oneway = slowly  # type: ignore[method-assign, assignment]
    assert (broker.run(), broker.progress) == (3, (3, 0))
