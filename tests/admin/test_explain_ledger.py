"""What a broker's ledger of pulls decides, with real consumers; and that nothing false is said without a ledger."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, LitePullConsumer, Message, MessageQueue, PullConsumer, PushConsumer
from rmqfast.admin import Admin, EventKind, Explanation, Outcome
from rmqfast.client.consumer import ConsumeFromWhere
from rmqfast.client.instance import ClientConfig
from rmqfast.client.lite_pull import LitePullOptions
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushOptions, PushTimings
from rmqfast.remoting import RemotingClient, RequestCode, Response, ResponseCode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from tests.waiting import PATIENCE, until

from .members import is_newest_kept, online, online_members, wants

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
CONFIG = {"messageDelayLevel": " ".join(["1s"] * 18)}


@pytest.fixture(scope="module", params=[True, False], ids=["ledger", "none"])
def has_ledger(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def cluster(has_ledger: bool) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config=CONFIG | {"pullLedgerEnable": str(has_ledger).lower()}) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: EmbeddedCluster) -> Iterator[Admin]:
    with Admin(name_server=cluster.name_server) as running:
        yield running


@dataclass
class Shop:
    """A topic and a group of its own for each test, and consumers that note what they process."""

    cluster: EmbeddedCluster
    admin: Admin
    producer: Producer
    topic: str
    directory: Path
    processed: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def group(self) -> str:
        return f"{self.topic}_group"

    def queue(self, number: int = 0) -> MessageQueue:
        return MessageQueue(self.topic, "broker-a", number)

    def send(self, body: bytes, tags: str | None = None, number: int = 0) -> Any:
        sent = self.producer.send(Message(self.topic, body, tags), self.queue(number))
        return self.admin.view_message(sent.offset_msg_id)

    def explain(self, message: Any) -> Explanation:
        return self.admin.explain(message, self.group)

    def config(self, name: str, persist: float = 0.1) -> ClientConfig:
        return ClientConfig(
            name_server=self.cluster.name_server,
            instance_name=name,
            client_ip="10.0.0.1",
            persist_offset_interval=persist,
            rebalance_interval=0.5,
            heartbeat_interval=0.5,
            local_offset_dir=self.directory / name,
        )

    @contextmanager
    def push(
        self,
        name: str = "a",
        tags: str = "*",
        listen: Callable[[Any], bool] = lambda _: True,
        *,
        model: Any = "CLUSTERING",
        persist: float = 0.1,
        pull_interval: int = 0,
    ) -> Iterator[PushConsumer]:
        """A push consumer; `listen` returns whether a message is processed."""

        def on_messages(messages: Sequence[Any], _context: Any) -> ConsumeConcurrentlyStatus:
            (message,) = messages
            if not listen(message):
                return ConsumeConcurrentlyStatus.RECONSUME_LATER
            self.processed.append((name, message.body))
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer = PushConsumer(
            self.group,
            config=self.config(name, persist),
            timings=PushTimings(reset=0.2),
            options=PushOptions(
                message_model=model,
                consume_from_where=FIRST,
                pull_suspend_millis=300,
                pull_interval=pull_interval,
                max_reconsume_times=1,
            ),
        )
        consumer.subscribe(self.topic, tags)
        consumer.register_message_listener(on_messages)
        with consumer:
            yield consumer
        until(lambda: f"10.0.0.1@{name}" not in online_members(self.admin, self.group))

    @contextmanager
    def lite(self, name: str = "a", tags: str = "*") -> Iterator[LitePullConsumer]:
        options = LitePullOptions(consume_from_where=FIRST)
        consumer = LitePullConsumer(self.group, config=self.config(name), options=options)
        consumer.subscribe(self.topic, tags)
        with consumer:
            yield consumer
            consumer.commit(persist=True)

    def poll(self, consumer: LitePullConsumer, name: str = "a") -> bool:
        self.processed += [(name, message.body) for message in consumer.poll(timeout=0.1)]
        return bool(self.processed)

    def passes(self, message: Any) -> bool:
        """Whether the group's offset is behind the message."""
        queue = self.explain(message).queue
        return queue is not None and (queue.consumer_offset or 0) > message.queue_offset

    def is_processed(self, body: bytes) -> bool:
        return any(processed == body for _, processed in self.processed)


@pytest.fixture
def shop(cluster: EmbeddedCluster, admin: Admin, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    topic = str(request.node.originalname).removeprefix("test_")[:60]
    admin.create_topic(topic, queues=2)
    with Producer("ledger_tests", name_server=cluster.name_server) as producer:
        yield Shop(cluster, admin, producer, topic, tmp_path)


def test_f1_a_pull_consumer_filters_by_each_pull_and_not_by_its_heartbeat(shop: Shop, has_ledger: bool) -> None:
    message = shop.send(b"x", "TagB")
    consumer = PullConsumer(shop.group, config=shop.config("a"))
    consumer.register_topics = [shop.topic]
    with consumer:
        # a consumer forgets the offsets of queues that it does not have, as Java's does
        until(lambda: shop.queue() in consumer.fetch_message_queues_in_balance(shop.topic))
        pulled = consumer.pull(shop.queue(), "TagA", 0, 32)
        assert pulled.messages == []
        consumer.update_consume_offset(shop.queue(), pulled.next_begin_offset)
        until(lambda: shop.passes(message))
        told = shop.explain(message)
    assert told.outcome is (Outcome.FILTERED if has_ledger else Outcome.UNKNOWN)
    if has_ledger:
        assert told.sentence.startswith("nobody got it: the broker filtered it for 10.0.0.1@a")
        assert " by TagA at 20" in told.sentence


def test_f2_a_broadcast_is_one_after_its_members_have_left(shop: Shop, has_ledger: bool) -> None:
    message = shop.send(b"x")
    with shop.push(model="BROADCASTING"):
        until(lambda: shop.is_processed(b"x"))
    told = shop.explain(message)
    assert told.outcome is (Outcome.BROADCASTING if has_ledger else Outcome.UNKNOWN)
    if has_ledger:
        assert told.sentences[1].startswith("handed to 10.0.0.1@a by * at 20")


def test_f3_a_message_was_processed_although_the_offset_was_set_back(shop: Shop, has_ledger: bool) -> None:
    message = shop.send(b"x")
    with shop.push():
        until(lambda: shop.passes(message))
    shop.admin.offsets.reset(shop.group, shop.queue(), 0, force=True)
    told = shop.explain(message)
    if has_ledger:
        assert told.outcome is Outcome.CONSUMED
        assert told.sentences[1] == "the offset is at 0 now: the message will be delivered again"
    else:
        # a statement about the offset, which says nothing of listeners
        assert told.sentence == "the group's offset has not passed it: 0 of 1, 1 behind, owner nobody"
    with shop.push():
        until(lambda: shop.passes(message))
        # the members of today are no members of then
        assert shop.explain(message).outcome is (Outcome.CONSUMED if has_ledger else Outcome.UNKNOWN)


def test_f4_a_lite_puller_that_has_left_processed_it(shop: Shop, has_ledger: bool) -> None:
    with shop.lite("a", "TagA") as one:
        with shop.lite("b", "TagB") as other:
            until(lambda: len(online_members(shop.admin, shop.group)) == 2)
            message = shop.send(b"x", "TagB", 1)
            # whoever of the two has the queue; each pulls by its own filter
            until(lambda: shop.poll(other, "b") or shop.poll(one) or shop.passes(message))
            if not shop.processed:
                message = shop.send(b"y", "TagA", 1)
                until(lambda: shop.poll(one))
        until(lambda: shop.passes(message))
        told = shop.explain(message)
    assert told.outcome is (Outcome.CONSUMED if has_ledger else Outcome.UNKNOWN)
    if has_ledger:
        assert (told.member or "").startswith(f"10.0.0.1@{shop.processed[0][0]}")
    else:
        assert told.member is None


def test_f5_clocks_of_members_and_brokers_may_be_apart(shop: Shop, has_ledger: bool) -> None:
    """a wants TagA, and its clock is an hour behind; b wants TagB, takes a message of TagB, and leaves."""
    now = int(time.time() * 1000)
    behind = now - 3_600_000
    a, b = wants(shop.topic, "TagA", behind + 1), wants(shop.topic, "TagB", behind)
    held = {queue: {"lastPullTimestamp": behind} for queue in (shop.queue(0), shop.queue(1))}
    told_of_itself = {"subscriptionSet": [a.to_json()], "mqTable": held, "properties": {}, "statusTable": {}}
    name_server = shop.cluster.name_server
    with online(name_server, "b", shop.group, [b]) as other:
        message = shop.send(b"x", "TagB")
        hand_out(shop, shop.cluster.brokers[0].address, other, b, message)
        commit(shop, other, message)
        with online(name_server, "a", shop.group, [a], running_info=lambda: told_of_itself):
            pass
    with online(name_server, "a", shop.group, [a], running_info=lambda: told_of_itself):
        told = shop.explain(message)
    assert told.outcome is (Outcome.CONSUMED if has_ledger else Outcome.UNKNOWN)
    if has_ledger:
        assert told.sentence.startswith("handed to 10.0.0.1@b by TagB at 20")


def hand_out(shop: Shop, address: str, client_id: str, subscription: SubscriptionData, message: Any) -> Response:
    """Pulls a message as a client does, with the subscription that the broker has."""
    fields = {
        "consumerGroup": shop.group,
        "topic": shop.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "maxMsgNums": 32,
        "sysFlag": 0,
        "commitOffset": 0,
        "suspendTimeoutMillis": 0,
        "subVersion": subscription.sub_version,
        "clientId": client_id,
    }
    with RemotingClient(address, timeout=PATIENCE) as client:
        return client.request(RequestCode.PULL_MESSAGE, {name: str(value) for name, value in fields.items()})


def commit(shop: Shop, client_id: str, message: Any) -> None:
    """Stores the offset behind a message as a client does."""
    fields = {
        "consumerGroup": shop.group,
        "topic": shop.topic,
        "queueId": message.queue_id,
        "commitOffset": message.queue_offset + 1,
        "clientId": client_id,
    }
    with RemotingClient(shop.cluster.brokers[0].address, timeout=PATIENCE) as client:
        client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, {name: str(value) for name, value in fields.items()})


def is_dead(shop: Shop, message: Any) -> bool:
    """Whether the message is a dead letter; without a ledger nobody can tell whether it was consumed once more."""
    told = shop.explain(message)
    return told.outcome in {Outcome.DEAD_LETTER, Outcome.UNKNOWN} and "consumed in vain 2 times" in told.sentence


def test_f6_a_dead_letter_that_is_sent_again_is_processed(shop: Shop, has_ledger: bool) -> None:
    is_mended = threading.Event()
    with shop.push(listen=lambda _: is_mended.is_set()):
        message = shop.send(b"x")
        until(lambda: is_dead(shop, message))
        is_mended.set()
        (letter,) = shop.admin.dead_letters.of_group(shop.group)
        shop.admin.dead_letters.resend(letter)
        until(lambda: shop.is_processed(b"x"))
        allowed = {Outcome.CONSUMED} if has_ledger else {Outcome.CONSUMED, Outcome.UNKNOWN}
        until(lambda: shop.explain(message).outcome in allowed)
        events = shop.admin.messages.timeline(message, shop.explain(message))
    # It failed, failed again, and was sent again as a dead letter.
    copies = [EventKind.RETRIED, EventKind.DEAD, EventKind.RETRIED]
    told = [EventKind.SENT, EventKind.STORED, *copies]
    assert [each.kind for each in events if each.kind in {*told}] == told
    assert [each.timestamp for each in events] == sorted(each.timestamp for each in events)
    handed = [each.client for each in events if each.kind is EventKind.HANDED_OUT]
    assert handed == (["10.0.0.1@a"] * 3 if has_ledger else [])


def test_f7_a_dead_letter_is_processed_after_a_reset(shop: Shop, has_ledger: bool) -> None:
    is_mended = threading.Event()
    with shop.push(listen=lambda _: is_mended.is_set()):
        message = shop.send(b"x")
        until(lambda: is_dead(shop, message))
        is_mended.set()
        shop.admin.offsets.reset_to_begin(shop.group, shop.topic)
        until(lambda: shop.is_processed(b"x"))
        until(lambda: shop.passes(message))
        outcome = Outcome.CONSUMED if has_ledger else Outcome.UNKNOWN
        until(lambda: shop.explain(message).outcome is outcome)


def test_f8_a_message_behind_a_slow_one_is_processed(shop: Shop, has_ledger: bool) -> None:
    goes_on = threading.Event()

    def listen(message: Any) -> bool:
        return message.body != b"slow" or goes_on.wait(PATIENCE)

    slow, message = shop.send(b"slow"), shop.send(b"x")
    with shop.push(listen=listen):
        until(lambda: shop.is_processed(b"x"))
        told = [shop.explain(each) for each in (slow, message)]
        goes_on.set()
        until(lambda: shop.passes(message))
    outcome = Outcome.NOT_CONFIRMED if has_ledger else Outcome.NOT_CONSUMED_YET
    assert [each.outcome for each in told] == [outcome] * 2
    for each in told:
        if has_ledger:
            assert each.sentence.startswith("handed to 10.0.0.1@a by * at 20")
            assert each.sentence.endswith("which has not confirmed it: the group's offset is 0")
        else:
            assert each.sentence == "the group's offset has not passed it: 0 of 2, 2 behind, owner 10.0.0.1@a"
        assert not each.has_problem


def test_f9_an_offset_is_told_seconds_after_the_message_is_processed(shop: Shop, has_ledger: bool) -> None:
    message = shop.send(b"x")
    # No second pull during the test: it would carry the offset.
    with shop.push(persist=3600, pull_interval=60_000):
        until(lambda: shop.is_processed(b"x"))
        told = shop.explain(message)
    assert told.outcome is (Outcome.NOT_CONFIRMED if has_ledger else Outcome.NOT_CONSUMED_YET)


def test_f10_a_message_that_an_administrator_skipped_was_not_consumed(shop: Shop, has_ledger: bool) -> None:
    first = shop.send(b"first")
    with shop.lite() as consumer:
        until(lambda: shop.poll(consumer))
        consumer.commit(persist=True)
        until(lambda: shop.passes(first))
    until(lambda: not online_members(shop.admin, shop.group))
    message = shop.send(b"x")
    shop.admin.offsets.reset(shop.group, shop.queue(), 2, force=True)
    with shop.lite() as consumer:
        until(lambda: online_members(shop.admin, shop.group))
        told = [shop.explain(each) for each in (first, message)]
    if has_ledger:
        assert [each.outcome for each in told] == [Outcome.CONSUMED, Outcome.SKIPPED]
        assert told[1].sentence == "nobody was handed it, and the group's offset is 2"
        assert " set the offset from 1 to 2 at 20" in told[1].sentences[1]
    else:
        assert [each.outcome for each in told] == [Outcome.UNKNOWN] * 2


def test_f11_a_retry_that_an_administrator_skipped_was_not_consumed(shop: Shop, has_ledger: bool) -> None:
    with shop.push(listen=lambda _: False) as consumer:
        message = shop.send(b"x")
        until(lambda: shop.explain(message).copies)
        consumer.suspend()  # as if it had crashed: the retry is not consumed
    retry = f"%RETRY%{shop.group}"
    until(lambda: "waits in" in shop.explain(message).sentence or shop.explain(message).outcome is Outcome.UNKNOWN)
    (status,) = shop.admin.topics.status(retry)
    shop.admin.offsets.reset(shop.group, status.queue, status.max_offset, force=True)
    told = shop.explain(message)
    assert told.outcome is (Outcome.SKIPPED if has_ledger else Outcome.UNKNOWN)
    with shop.push():
        until(lambda: shop.passes(message))
        assert shop.explain(message).outcome is told.outcome


def test_owners_are_those_of_then(shop: Shop, has_ledger: bool) -> None:
    with shop.push("a"):
        message = shop.send(b"x")
        until(lambda: shop.passes(message))
        with shop.push("b"):
            until(lambda: len(online_members(shop.admin, shop.group)) == 2)
            until(lambda: {owner_of(shop, number) for number in (0, 1)} == {"10.0.0.1@a", "10.0.0.1@b"})
            told = shop.explain(message)
    assert told.outcome is (Outcome.CONSUMED if has_ledger else Outcome.UNKNOWN)
    assert told.member == ("10.0.0.1@a" if has_ledger else None)


def owner_of(shop: Shop, number: int) -> str | None:
    queue = shop.admin.explain(shop.queue(number), shop.group).queue
    return None if queue is None else queue.owner


def test_rows_of_a_topic_that_was_deleted_do_not_count(shop: Shop, has_ledger: bool) -> None:
    with shop.push():
        until(lambda: shop.passes(shop.send(b"x")))
    shop.admin.topics.delete(shop.topic)
    shop.admin.create_topic(shop.topic, queues=2)
    message = shop.send(b"y")
    told = shop.explain(message)
    assert message.queue_offset == 0
    if has_ledger:
        assert told.sentence == "the group's offset is 0, and nobody was handed it"
    assert told.outcome is Outcome.NOT_CONSUMED_YET
    assert told.next_step == f"start a member of the group {shop.group}"


def test_the_article_is_told_after_both_members_have_left(shop: Shop, has_ledger: bool) -> None:
    """Article 004 in real time: two members want different tags, and the broker filters by those of one of them."""
    tags = {"a": "TagA", "b": "TagB"}
    with shop.push("a", tags["a"]), shop.push("b", tags["b"]):
        until(lambda: {owner_of(shop, number) for number in (0, 1)} == {"10.0.0.1@a", "10.0.0.1@b"})
        until(lambda: is_newest_kept(shop.admin, shop.group, shop.topic))
        kept = shop.admin.groups.connections(shop.group).subscriptions[shop.topic].sub_string
        sent = [shop.send(b"%d" % number, kept, number % 2) for number in range(4)]
        until(lambda: all(map(shop.passes, sent)))
    told = [shop.explain(message) for message in sent]
    processed = {body for _, body in shop.processed}
    assert len(processed) == 2
    if not has_ledger:
        assert {each.outcome for each in told} == {Outcome.UNKNOWN}
        return
    outcomes = [Outcome.CONSUMED if message.body in processed else Outcome.LOST for message in sent]
    assert [each.outcome for each in told] == outcomes
    lost = next(each for each in told if each.outcome is Outcome.LOST)
    (loser,) = (name for name in tags if tags[name] != kept)
    assert lost.sentence.startswith(f"nobody got it: handed to 10.0.0.1@{loser} by {kept} ")
    events = shop.admin.messages.timeline(sent[told.index(lost)], lost)
    assert [(each.kind, each.client) for each in events if each.group] == [(EventKind.DROPPED, f"10.0.0.1@{loser}")]
    own = f"its own subscription {tags[loser]}"
    assert lost.sentence.endswith(f"dropped by its tag check: its tag {kept} is not in {own}")
    assert (lost.next_step or "").startswith(f"give all members of the group {shop.group} the same subscription")


def test_a_ledger_survives_its_broker(tmp_path: Path) -> None:
    def explain(*, is_first: bool) -> Explanation:
        with (
            EmbeddedCluster(tmp_path / "store", config=CONFIG) as cluster,
            Admin(name_server=cluster.name_server) as admin,
            Producer("ledger_tests", name_server=cluster.name_server) as producer,
        ):
            shop = Shop(cluster, admin, producer, "kept", tmp_path)
            if is_first:
                admin.create_topic("kept", queues=1)
                with shop.push():
                    message = shop.send(b"x")
                    until(lambda: shop.passes(message))
            return shop.explain(admin.messages.by_offset(shop.queue(), 0))

    before = explain(is_first=True)
    assert before.outcome is Outcome.CONSUMED
    assert explain(is_first=False).sentences == before.sentences


@pytest.mark.parametrize("slave_tells", [True, False])
def test_a_message_that_a_slave_handed_out_is_not_skipped(tmp_path: Path, slave_tells: bool) -> None:
    with (
        EmbeddedCluster(replicas=1, config=CONFIG) as cluster,
        Admin(name_server=cluster.name_server) as admin,
        Producer("ledger_tests", name_server=cluster.name_server) as producer,
    ):
        admin.create_topic("followed", queues=1)
        shop = Shop(cluster, admin, producer, "followed", tmp_path)
        wanted = wants(shop.topic, "*")
        with online(cluster.name_server, "a", shop.group, [wanted]) as client_id:
            message = shop.send(b"x")
            slave = cluster.slaves[0]
            until(lambda: hand_out(shop, slave.address, client_id, wanted, message).code == ResponseCode.SUCCESS)
            commit(shop, client_id, message)
            if not slave_tells:
                slave.stop()
            told = shop.explain(message)
    if slave_tells:
        assert told.outcome is Outcome.CONSUMED
        assert told.sentence.startswith("handed to 10.0.0.1@a by * at 20")
    else:
        assert told.outcome is not Outcome.SKIPPED
