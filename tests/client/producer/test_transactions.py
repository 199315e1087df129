"""Transactions, against a broker in this process: committed, rolled back, asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from rmqfast import EmbeddedCluster, Message, open_store
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import (
    EndTransactionContext,
    LocalTransactionState,
    SendStatus,
    TransactionProducer,
)
from rmqfast.client.producer.transactions import TransactionChecks
from rmqfast.errors import ClientError
from rmqfast.remoting import RemotingServer, Request, RequestCode, Response, ResponseCode
from tests.client.awaited import Face
from tests.waiting import PATIENCE, until

from .transactions import ASKS_SOON, UNASKED

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState
#: Makes a producer.
Make: TypeAlias = type[TransactionProducer]


@pytest.fixture(scope="module")
def make(face: Face) -> Make:
    """What makes a producer."""
    return face(TransactionProducer)


@pytest.fixture(scope="module")
def cluster(make: Make) -> Iterator[EmbeddedCluster]:
    del make  # each has a cluster of its own, in which no topic is there yet
    with EmbeddedCluster(config=ASKS_SOON) as running:
        yield running


class Listener:
    """Says what it was told to say, and remembers what it was asked."""

    def __init__(self, executed: Any = COMMIT, checked: Any = COMMIT) -> None:
        self.executed, self.checked = executed, checked
        self.seen: list[tuple[Message, Any]] = []
        self.asked: list[Any] = []
        self.threads: set[str] = set()

    def execute_local_transaction(self, message: Message, argument: Any) -> LocalTransactionState | None:
        self.seen.append((message, argument))
        return self._say(self.executed)

    def check_local_transaction(self, message: Any) -> LocalTransactionState | None:
        self.asked.append(message)
        self.threads.add(threading.current_thread().name)
        return self._say(self.checked)

    @staticmethod
    def _say(said: Any) -> LocalTransactionState | None:
        if isinstance(said, Exception):
            raise said
        return said  # type: ignore[no-any-return]


def bodies(cluster: EmbeddedCluster, topic: str) -> set[bytes]:
    """What was committed; where a machine is slow, a broker asks twice, and stores twice what is committed twice."""
    return {row["body"] for row in rows(cluster, topic)}


def rows(cluster: EmbeddedCluster, topic: str) -> list[dict[str, Any]]:
    store = open_store(cluster.brokers[0].state.root)
    return store.scan(topic).to_arrow().to_pylist() if topic in store.topics() else []


def test_a_committed_message_shows_up_and_one_that_is_rolled_back_does_not(
    cluster: EmbeddedCluster, make: Make
) -> None:
    listener = Listener(COMMIT)
    with make("bank", listener, name_server=cluster.name_server) as producer:
        listener.executed = ROLLBACK
        assert producer.send_in_transaction(Message("money", b"no", properties=UNASKED)).local_state is ROLLBACK
        listener.executed = COMMIT
        done = producer.send_in_transaction(Message("money", b"yes", tags="t", properties={"a": "1", **UNASKED}), 7)
    until(lambda: bodies(cluster, "money") == {b"yes"})
    (row,) = rows(cluster, "money")
    properties = dict(row["properties"])
    assert (properties["TRAN_MSG"], properties["PGROUP"], properties["a"]) == ("true", "bank", "1")
    assert row["msg_id"] == done.send_result.msg_id == done.send_result.transaction_id
    message, argument = listener.seen[1]
    assert (argument, message.properties["UNIQ_KEY"]) == (7, row["msg_id"])
    assert listener.asked == []


@pytest.mark.parametrize("executed", [UNKNOWN, None, "nonsense", ValueError("bank is closed")])
def test_where_the_end_is_not_known_the_broker_asks_and_is_told(
    cluster: EmbeddedCluster, executed: Any, make: Make
) -> None:
    topic = f"asked-{type(executed).__name__}"
    listener = Listener(executed, COMMIT)
    with make("asker", listener, name_server=cluster.name_server) as producer:
        sent = producer.send_in_transaction(Message(topic, b"late"))
        assert sent.local_state is UNKNOWN
        until(lambda: bodies(cluster, topic) == {b"late"})
        asked = listener.asked[0]
        assert (asked.body, asked.topic, asked.transaction_id) == (b"late", topic, sent.send_result.msg_id)
        assert listener.threads == {"rmqfast-check-asker"}


def test_a_namespace_is_not_shown_to_the_listener(cluster: EmbeddedCluster, make: Make) -> None:
    listener = Listener(UNKNOWN, COMMIT)
    with make("spaced", listener, name_server=cluster.name_server, namespace="ns") as producer:
        producer.send_in_transaction(Message("spaced", b"x"))
        until(lambda: bodies(cluster, "ns%spaced") == {b"x"})
    assert {message.topic for message in listener.asked} == {"spaced"}


def test_a_check_that_fails_is_asked_again(cluster: EmbeddedCluster, make: Make) -> None:
    listener, watcher = Listener(UNKNOWN, ValueError("not yet")), Watcher()
    with make("again", listener, name_server=cluster.name_server) as producer:
        producer.register_end_transaction_hook(watcher)
        producer.send_in_transaction(Message("again", b"x"))
        until(lambda: len(listener.asked) >= 2)
        listener.checked = ROLLBACK
        until(lambda: watcher.seen[-1].state is ROLLBACK)
        listener.executed = COMMIT
        producer.send_in_transaction(Message("again", b"sent later", properties=UNASKED))
        until(lambda: bodies(cluster, "again"))
    assert bodies(cluster, "again") == {b"sent later"}


def test_a_question_that_comes_after_the_end_is_dropped(
    rmqfast_cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    listener = Listener()
    with TransactionProducer("ended", listener, name_server=rmqfast_cluster.name_server) as producer:
        pass
    producer.member.check_transaction_state(rmqfast_cluster.brokers[0].address, Message("t", b"x"), {})
    assert "of group ended is dropped" in caplog.text
    assert listener.asked == []


def test_questions_that_wait_at_the_end_are_dropped() -> None:
    is_asked, may_answer, answered = threading.Event(), threading.Event(), list[str]()

    def answer_slowly() -> None:
        is_asked.set()
        may_answer.wait(PATIENCE)

    checks = TransactionChecks("checks")
    checks.submit(answer_slowly)
    assert is_asked.wait(PATIENCE)
    checks.submit(lambda: answered.append("what waited"))
    checks.close(0.0)
    may_answer.set()
    checks.close(PATIENCE)
    assert answered == []


def test_another_member_of_the_group_answers_for_one_that_is_gone(cluster: EmbeddedCluster, make: Make) -> None:
    first, second = Listener(UNKNOWN, UNKNOWN), Listener(COMMIT, COMMIT)
    with make("members", first, name_server=cluster.name_server) as producer:
        producer.send_in_transaction(Message("handed", b"over"))
    soon = ClientConfig(name_server=cluster.name_server, heartbeat_interval=0.05)
    with make("members", second, config=soon):
        until(lambda: bodies(cluster, "handed") == {b"over"})
    assert {message.body for message in second.asked} == {b"over"}


def test_a_delay_is_left_out_and_a_send_that_fails_executes_nothing(cluster: EmbeddedCluster, make: Make) -> None:
    listener = Listener()
    with make("refused", listener, name_server=cluster.name_server) as producer:
        producer.send_in_transaction(Message("prompt", b"x", delay_level=3, properties={"DELAY": "3"}))
        until(lambda: bodies(cluster, "prompt") == {b"x"})
        with pytest.raises(ClientError, match="the message body length is zero"):
            producer.send_in_transaction(Message("prompt", b""))
        assert len(listener.seen) == 1


def test_a_message_that_is_stored_less_safely_is_rolled_back(cluster: EmbeddedCluster, make: Make) -> None:
    with make("makes", Listener(), name_server=cluster.name_server) as producer:
        producer.create_topic("unsafe")
    ends: list[str | None] = []

    def end(request: Request) -> None:
        ends.append(request.ext_fields.get("commitOrRollback"))

    stored = {"msgId": "7F00000100006342000000000000032D", "queueId": "0", "queueOffset": "0"}
    answers: dict[int, Callable[[Request], Response | None]] = {
        RequestCode.SEND_MESSAGE_V2: lambda _: Response(ResponseCode.FLUSH_DISK_TIMEOUT, None, stored),
        RequestCode.END_TRANSACTION: end,
        RequestCode.HEART_BEAT: lambda _: Response(),
        RequestCode.UNREGISTER_CLIENT: lambda _: Response(),
    }
    listener = Listener()
    with RemotingServer(answers) as server:
        broker = server.listen("127.0.0.1:0")
        config = ClientConfig(name_server=cluster.name_server, translate_address=lambda _: broker)
        with make("unsafe", listener, config=config) as producer:
            result = producer.send_in_transaction(Message("unsafe", b"x"))
            until(lambda: ends)
    assert (result.send_result.status, result.local_state) == (SendStatus.FLUSH_DISK_TIMEOUT, ROLLBACK)
    assert ends == ["12"]
    assert listener.seen == []


class Watcher:
    """A hook that remembers, and then fails."""

    name = "watcher"

    def __init__(self) -> None:
        self.seen: list[EndTransactionContext] = []

    def end_transaction(self, context: EndTransactionContext) -> None:
        self.seen.append(context)
        raise ValueError


def test_hooks_are_told_how_transactions_end_and_keep_no_broker_from_being_told(
    cluster: EmbeddedCluster, make: Make
) -> None:
    watcher = Watcher()
    with make("told", Listener(UNKNOWN, COMMIT), name_server=cluster.name_server) as producer:
        producer.register_end_transaction_hook(watcher)
        sent = producer.send_in_transaction(Message("hooked-money", b"1", keys="k", tags="t")).send_result
        until(lambda: bodies(cluster, "hooked-money") == {b"1"})
    # where a machine is slow, the broker asks before it is told of the first end, and may be told twice
    own = next(context for context in watcher.seen if not context.is_from_check)
    checked = next(context for context in watcher.seen if context.is_from_check)
    address = cluster.brokers[0].address
    expected = "told", address, sent.msg_id, sent.msg_id
    for context in (own, checked):
        told = context.producer_group, context.broker_address, context.message_id, context.transaction_id
        assert told == expected
        assert (context.message.topic, context.message.keys, context.message.tags) == ("hooked-money", "k", "t")
    assert (own.state, checked.state) == (UNKNOWN, COMMIT)
