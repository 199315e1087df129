"""What a real broker stored by itself, stored again: each record of a golden log is the same, every byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rmqfast._native import parse_message_id
from rmqfast.broker.delay.schedule import ScheduleMessageService
from rmqfast.broker.messages.send_back import SendBackProcessor
from rmqfast.broker.messages.stored_message import StoredMessage
from rmqfast.broker.metadata import Metadata
from rmqfast.broker.topics.topic_manager import HALF_TOPIC, OP_TOPIC
from rmqfast.broker.transactions.check_round import with_check_counted
from rmqfast.broker.transactions.half_messages import HalfMessages
from rmqfast.store.config import SubscriptionGroupConfig
from rmqfast.store.config.delay_levels import SCHEDULE_TOPIC
from tests.broker.client_doubles import Groups, Topics, request
from tests.broker.memory_store import MemoryStore, records_of
from tests.reference.record import Record

GROUP = "fx_failing"


class Replay:
    """Puts what clients sent as it is, and lets the broker's part of the log be made again."""

    def __init__(self, metadata: Metadata) -> None:
        self.now = self.born = 0
        self.store = MemoryStore(lambda: self.now, "127.0.0.1:21130")
        self.half = HalfMessages(self.store, self.store.append, store_host="127.0.0.1:21130", now=lambda: self.born)
        self.back = SendBackProcessor(
            self.store,
            self.store.append,
            find_group=Groups(SubscriptionGroupConfig(group_name=GROUP)).find,
            make_topic=Topics().make,
            is_writable=lambda: True,
            broker_ip="127.0.0.1",
        )
        self.schedule = ScheduleMessageService(metadata, self.store, self.store.deliver, started=0, batch=1)
        self.by_key: dict[str, Record] = {}

    def make(self, wanted: Record) -> str | None:
        """Has the broker store what `wanted` is; says what that was, None for what a client sent."""
        self.now, self.born = wanted.store_timestamp, wanted.born_timestamp
        key = wanted.properties.get("UNIQ_KEY", "")
        if wanted.topic == OP_TOPIC:
            self.half.remove(self.half_message(int(wanted.body)))
            return "operation"
        if wanted.prepared_transaction_offset:
            half = self.half.find(wanted.prepared_transaction_offset)
            assert half is not None
            self.half.commit(half)
            return "commit"
        if wanted.topic == HALF_TOPIC and "TRANSACTION_CHECK_TIMES" in wanted.properties:
            half = StoredMessage.parse(self.store.records[self.by_key[key].physical_offset])
            self.half.put_back(half, with_check_counted(half))
            return "half message put back"
        if wanted.reconsume_times and not wanted.topic.startswith("%RETRY%"):
            self.send_back(wanted, key)
            return "retry" if wanted.topic == SCHEDULE_TOPIC else "dead letter"
        if "DELAY" in wanted.properties and wanted.topic != SCHEDULE_TOPIC:
            level = int(wanted.properties["DELAY"])
            assert self.schedule._deliver_due(level, self.now)[0] == 1  # noqa: SLF001 - one level, at a recorded time
            return "delivery"
        return None

    def half_message(self, queue_offset: int) -> StoredMessage:
        return StoredMessage.parse(self.store.records[self.store.queues[HALF_TOPIC, 0][queue_offset][0]])

    def send_back(self, wanted: Record, key: str) -> None:
        _, _, offset = parse_message_id(wanted.properties["ORIGIN_MESSAGE_ID"]) or ("", 0, -1)
        if wanted.reconsume_times > 1:
            offset = self.by_key[key].physical_offset
        fields: dict[str, Any] = {"offset": offset, "group": GROUP, "delayLevel": 0, "maxReconsumeTimes": 2}
        assert self.back.consumer_send_msg_back(request(36, **fields)).code == 0


def test_what_a_broker_stores_by_itself_has_the_bytes_of_a_real_one(
    golden_store: Callable[[str], Path], metadata: Metadata
) -> None:
    root = golden_store("delaytx-4.9.4")
    replay, made = Replay(metadata), Counter[str]()
    for wanted, data in records_of((root / "commitlog").iterdir()):
        what = replay.make(wanted)
        if what is None:
            replay.store.put_record(wanted, data)
        made[what or "sent"] += 1
        assert replay.store.records.get(wanted.physical_offset) == data, (what, wanted)
        if wanted.topic != SCHEDULE_TOPIC:
            replay.by_key[wanted.properties.get("UNIQ_KEY", "")] = wanted
    assert made == {
        "sent": 20 + 12 + 17,
        "delivery": 52,
        "retry": 40,
        "dead letter": 20,
        "commit": 4,
        "operation": 8,
        "half message put back": 4,
    }
    # and its units: those of delivered messages have the hash of the tag
    for (topic, queue_id), units in replay.store.queues.items():
        stored = (root / "consumequeue" / topic / str(queue_id) / f"{0:020}").read_bytes()
        for at, (offset, size, code) in enumerate(units):
            wanted_unit = offset.to_bytes(8) + size.to_bytes(4) + code.to_bytes(8, signed=True)
            assert stored[at * 20 : at * 20 + 20] == wanted_unit
