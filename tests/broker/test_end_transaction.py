"""END_TRANSACTION and RESUME_CHECK_HALF_MESSAGE: what is stored, what is answered."""

from __future__ import annotations

from typing import Any

import pytest

from rmqfast import Message
from rmqfast.broker.topics.topic_manager import HALF_TOPIC, OP_TOPIC
from rmqfast.broker.transactions.end_transaction import EndTransactionProcessor
from rmqfast.broker.transactions.half_messages import HalfMessages
from rmqfast.errors import FlushTimeoutError, RmqError, StoreIOError
from rmqfast.remoting import Again, Later, Response, process
from tests.broker.client_doubles import request
from tests.broker.memory_store import MemoryStore
from tests.broker.recorded import recorded

PROPERTIES = {
    "REAL_TOPIC": "orders",
    "TRAN_MSG": "true",
    "UNIQ_KEY": "U",
    "PGROUP": "p",
    "WAIT": "true",
    "TAGS": "t",
    "REAL_QID": "3",
}
HALF = Message(HALF_TOPIC, b"paid", properties=PROPERTIES, flag=5, born_timestamp=77)
COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0


class Broker:
    """A half message at queue offset 0, physical offset `at`."""

    def __init__(self) -> None:
        self.store = MemoryStore(lambda: 1000)
        self.at = self.store.deliver(HALF, born_host="10.9.9.9:1", sys_flag=1, reconsume_times=2).physical_offset
        half = HalfMessages(self.store, self.store.append, store_host="127.0.0.1:10911", now=lambda: 999)
        self.processor = EndTransactionProcessor(half, self.store, max_message_size=4096)

    def end(self, how: int, **fields: Any) -> Response | Later | Again | None:
        header: dict[str, Any] = {
            "producerGroup": "p",
            "tranStateTableOffset": 0,
            "commitLogOffset": self.at,
            "commitOrRollback": how,
            "fromTransactionCheck": "false",
            "msgId": "U",
        }
        return process(self.processor.processors(), request(37, **(header | fields)))

    def resume(self, message_id: str) -> Response | Later | Again | None:
        return process(self.processor.processors(), request(323, msgId=message_id))


def test_a_committed_message_goes_to_its_own_queue() -> None:
    broker = Broker()
    assert broker.end(COMMIT) == Response()
    (message,) = broker.store.messages("orders", 3)
    assert (message.body, message.flag, message.born_timestamp) == (b"paid", 5, 77)
    assert (message.sys_flag, message.prepared_transaction_offset, message.reconsume_times) == (9, broker.at, 2)
    assert (message.properties, str(message.born_host)) == (PROPERTIES, "10.9.9.9:1")
    (operation,) = broker.store.messages(OP_TOPIC)
    assert (operation.body, operation.properties) == (b"0", {"TAGS": "d", "WAIT": "true"})
    assert (operation.born_timestamp, str(operation.born_host)) == (999, "127.0.0.1:10911")


def test_a_second_commit_stores_the_message_a_second_time() -> None:
    broker = Broker()
    broker.end(COMMIT)
    broker.end(COMMIT)
    assert len(broker.store.messages("orders", 3)) == len(broker.store.messages(OP_TOPIC)) == 2


@pytest.mark.parametrize("how", [UNKNOWN, 4, -1, 99])
def test_an_end_that_nobody_knows_is_not_answered(how: int) -> None:
    broker = Broker()
    assert broker.end(how, fromTransactionCheck="true") is None
    assert len(broker.store.records) == 1


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        ({"commitLogOffset": 9999}, "Find prepared transaction message failed"),
        ({"commitLogOffset": -1}, "Find prepared transaction message failed"),
        ({"producerGroup": "other"}, "The producer group wrong"),
        ({"tranStateTableOffset": 1}, "The transaction state table offset wrong"),
        ({"tranStateTableOffset": "x"}, "the header field tranStateTableOffset is no number: 'x'"),
    ],
)
def test_an_end_of_another_transaction_is_refused(fields: dict[str, object], remark: str) -> None:
    for how in (COMMIT, ROLLBACK):
        broker = Broker()
        answer = broker.end(how, **fields)
        assert isinstance(answer, Response)
        assert (answer.code, answer.remark, len(broker.store.records)) == (1, remark, 1)


def test_a_message_that_is_no_half_message_ends_no_transaction() -> None:
    broker = Broker()
    broker.end(COMMIT)
    (message,) = broker.store.messages("orders", 3)
    answer = broker.end(COMMIT, commitLogOffset=message.physical_offset)
    assert isinstance(answer, Response)
    assert answer.remark == "Find prepared transaction message failed"


@pytest.mark.parametrize("lost", ["REAL_TOPIC", "REAL_QID"])
def test_a_half_message_that_belongs_nowhere_ends_no_transaction(lost: str) -> None:
    broker = Broker()
    rest = {name: value for name, value in PROPERTIES.items() if name != lost}
    place = broker.store.deliver(Message(HALF_TOPIC, b"", properties=rest))
    answer = broker.end(COMMIT, commitLogOffset=place.physical_offset, tranStateTableOffset=1)
    assert isinstance(answer, Response)
    assert answer.remark == "Find prepared transaction message failed"


ILLEGAL = (
    "The message is illegal, maybe msg body or properties length not matched. msg body length limit 4096B,"
    " msg properties length limit 32KB."
)


@pytest.mark.parametrize(
    ("status", "code", "remark"),
    [
        ("CREATE_MAPEDFILE_FAILED", 1, "Create mapped file failed."),
        ("MESSAGE_ILLEGAL", 13, ILLEGAL),
        ("PROPERTIES_SIZE_EXCEEDED", 13, ILLEGAL),
        ("SERVICE_NOT_AVAILABLE", 14, "Service not available now."),
        ("OS_PAGECACHE_BUSY", 1, "OS page cache busy, please try another machine"),
        ("UNKNOWN_ERROR", 1, "UNKNOWN_ERROR"),
        ("LMQ_CONSUME_QUEUE_NUM_EXCEEDED", 1, "UNKNOWN_ERROR DEFAULT"),
    ],
)
def test_a_commit_that_the_store_refuses_stays_open(status: str, code: int, remark: str) -> None:
    broker, error = Broker(), StoreIOError("x")
    error.put_status = status
    broker.store.refusals = [error]
    answer = broker.end(COMMIT)
    assert isinstance(answer, Response)
    assert (answer.code, answer.remark, len(broker.store.records)) == (code, remark, 1)


def test_a_commit_that_is_stored_and_not_yet_on_the_disk_is_one() -> None:
    broker = Broker()
    broker.store.refusals = [FlushTimeoutError("x")]
    assert broker.end(COMMIT) == Response()
    assert len(broker.store.messages(OP_TOPIC)) == 1


def test_an_operation_that_cannot_be_stored_is_no_error() -> None:
    broker = Broker()
    broker.store.refusals = [RmqError("x")]
    assert broker.end(ROLLBACK) == Response()
    assert len(broker.store.records) == 1


def test_a_half_message_that_was_given_up_is_checked_again() -> None:
    broker = Broker()
    spent = PROPERTIES | {"TRANSACTION_CHECK_TIMES": "15"}
    place = broker.store.deliver(Message("TRANS_CHECK_MAX_TIME_TOPIC", b"paid", properties=spent, flag=5), sys_flag=1)
    assert broker.resume(place.offset_msg_id) == Response()
    again = broker.store.messages(HALF_TOPIC)[1]
    assert (again.body, again.flag, again.sys_flag, again.queue_offset) == (b"paid", 5, 1, 1)
    assert again.properties == spent | {"TRANSACTION_CHECK_TIMES": "0"}


@pytest.mark.parametrize("message_id", ["", "x", "7F00000100002A9F00000000000003E7", "F" * 32, "0" * 56])
def test_what_is_no_id_of_a_half_message_cannot_be_checked_again(message_id: str) -> None:
    broker = Broker()
    broker.store.records[0] = b"\0" * 8
    answer = broker.resume(message_id)
    assert isinstance(answer, Response)
    wanted = "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."
    assert (answer.code, answer.remark) == (1, wanted)


def test_a_store_that_takes_nothing_cannot_check_again() -> None:
    broker = Broker()
    broker.store.refusals = [RmqError("x")]
    answer = broker.resume("7F00000100002A9F0000000000000000")
    assert isinstance(answer, Response)
    assert (answer.code, answer.remark) == (1, "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed.")


def test_the_ends_that_a_java_client_told_are_understood() -> None:
    broker, stored = Broker(), []
    group = {"PGROUP": "rmqlab_producer_tx"}
    for one in recorded(37):
        broker.store.end = int(one["fields"]["commitLogOffset"])
        broker.store.queues[HALF_TOPIC, 0] = [(0, 0, 0)] * int(one["fields"]["tranStateTableOffset"])
        broker.store.deliver(Message(HALF_TOPIC, b"", properties=PROPERTIES | group))
        before = len(broker.store.records)
        answer = process(broker.processor.processors(), request(37, **one["fields"], version=one["version"]))
        stored.append((one["step"], answer, len(broker.store.records) - before))
    unknown = ("tx-check", None, 0)
    assert stored == [("tx-commit", Response(), 2), ("tx-rollback", Response(), 1), *[unknown] * 4]
    (message,) = broker.store.messages("orders", 3)
    assert message.prepared_transaction_offset == 2194
