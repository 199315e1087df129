"""Where groups begin in a queue whose first messages are gone, on rmqfast's broker and on RocketMQ's."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rmqfast import AppendOptions, EmbeddedCluster, Message, MessageQueue, open_store
from rmqfast.admin import Admin
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import Producer
from rmqfast.client.pull import PullConsumer, PullStatus
from rmqfast.client.push import PushConsumer, PushOptions
from rmqfast.remoting.protocol.consumer_running_info import ConsumerRunningInfo
from tests.admin.members import online_members
from tests.broker.interop.cluster import SCENARIO, Cluster, cluster_of
from tests.client.push.listening import member_of
from tests.proxy import Proxy

from .scene import Seen, until

TOPIC = "beginnings"
MIN, MAX, LATER, STORED = 40, 100, 60, 70
#: So large that a file of the log has MIN of them.
BODY = b"x" * 25_900
OPTIONS = AppendOptions(file_size=1 << 20, queue_file_size=60_000, index_slots=1000, index_entries=4000)
STARTS = ("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP")
#: Where a group without an offset begins in the topic, and in its topic of retries, which has messages at 1 and 2.
BEGINS = {STARTS[0]: (MAX, 1), STARTS[1]: (MIN, 1), STARTS[2]: (LATER, 3)}


def prepare(store: Path) -> str:
    """Makes a store whose log has lost its first file; gives the time of the message at LATER, `yyyyMMddHHmmss`."""
    retries = [f"%RETRY%{start}" for start in STARTS]
    # brokers find the message that is nearest to a time, and of several of one time any: each has a time of its own
    second = int(time.time()) - 60
    first, later = (second - 10) * 1000, second * 1000 + 50
    times = itertools.chain(range(first, first + len(retries) + LATER), itertools.count(later))
    with open_store(store, mode="a", options=OPTIONS, clock=times.__next__) as made:
        for topic in retries:
            made.append(Message(topic, b"gone"))
        for _ in range(LATER):
            made.append(Message(TOPIC, BODY))
        for _ in range(LATER, MAX):
            made.append(Message(TOPIC, BODY))
        for topic, body in itertools.product(retries, (b"again", b"again")):
            made.append(Message(topic, body))
    min((store / "commitlog").iterdir()).unlink()
    return time.strftime("%Y%m%d%H%M%S", time.localtime(second))


@pytest.fixture(params=["ours", "4.9.4", "5.3.3", "5.5.0"])
def begun(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Cluster, str]]:
    """A cluster with such a store, and the time."""
    sizes = [line for line in SCENARIO if not line.startswith("mappedFileSizeCommitLog")]
    cluster = cluster_of(request.param, tmp_path, (*sizes, "mappedFileSizeCommitLog=1048576"))
    later = prepare(cluster.store)
    with cluster:
        yield cluster, later


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_group_begins_where_it_is_told_where_the_first_messages_are_gone(begun: tuple[Cluster, str]) -> None:
    cluster, later = begun
    seen: dict[str, Seen] = {}
    with ExitStack() as stack:
        admin = stack.enter_context(Admin(name_server=cluster.name_server, timeout=20))
        producer = stack.enter_context(Producer("beginnings", name_server=cluster.name_server))
        admin.create_topic(TOPIC, queues=1)
        admin.create_topic("elsewhere", queues=1)
        until(lambda: producer.fetch_publish_message_queues(TOPIC), "the topic")
        (queue,) = producer.fetch_publish_message_queues(TOPIC)
        by_hand = stack.enter_context(PullConsumer("by_hand", name_server=cluster.name_server))
        assert (by_hand.min_offset(queue), by_hand.max_offset(queue)) == (MIN, MAX)
        assert by_hand.fetch_consume_offset(queue, from_store=True) == -1, "no 0 for who has none: it is gone"
        at_nothing = by_hand.pull(queue, "*", 0, 32)
        assert (at_nothing.status, at_nothing.next_begin_offset) == (PullStatus.OFFSET_ILLEGAL, MIN)

        began = time.monotonic()
        for start, stored in itertools.product(STARTS, (None, STORED)):
            group = start if stored is None else f"{start}-stored"
            if stored is not None:
                seen[f"{group}-first"] = Seen()
                first = _consumer(cluster, group, seen[f"{group}-first"], "elsewhere", PushOptions())
                with first:
                    until(lambda g=group: admin.groups.connections(g).client_ids, "the group is known")  # type: ignore[misc]
                until(lambda g=group: not online_members(admin, g), "it is gone")  # type: ignore[misc]
                admin.offsets.reset(group, queue, stored, force=True)
            seen[group] = Seen()
            options = PushOptions(consume_from_where=start, consume_timestamp=later)
            stack.enter_context(_consumer(cluster, group, seen[group], TOPIC, options))
        expected = {start: BEGINS[start][0] for start in STARTS} | {f"{start}-stored": STORED for start in STARTS}
        until(
            lambda: all(
                _is_taken(admin.groups.running_info(group, member), queue)
                for group in expected
                for member in admin.groups.connections(group).client_ids
            ),
            "each has the queue",
        )
        last = producer.send(Message(TOPIC, b"last"), queue).queue_offset
        assert last == MAX
        for group, begin in expected.items():
            until(lambda g=group: (0, last) in _places(seen[g], TOPIC), f"{group} has the last message")  # type: ignore[misc]
            assert sorted(_places(seen[group], TOPIC)) == [(0, offset) for offset in range(begin, MAX + 1)], group
        for start in STARTS:
            again = [(0, offset) for offset in range(BEGINS[start][1], 3)]
            until(lambda s=start, a=again: sorted(_places(seen[s], "retried")) == a, f"{start}: {again}")  # type: ignore[misc]
        # whoever begins where nothing is any more gives the queue up, and takes it again after ten seconds
        assert seen[STARTS[1]].times[0] - began >= 10


def _is_taken(info: ConsumerRunningInfo, queue: MessageQueue) -> bool:
    """Whether a member has the queue, and knows where it goes on there; it may have given it up meanwhile."""
    held = info.queues.get(queue)
    return held is not None and held.commit_offset >= 0


def _consumer(cluster: Cluster, group: str, listener: Seen, topic: str, options: PushOptions) -> PushConsumer:
    config = ClientConfig(name_server=cluster.name_server, rebalance_interval=2.0, instance_name=f"{group}-{topic}")
    made = PushConsumer(group, config=config, options=options)
    made.subscribe(topic)
    made.register_message_listener(listener)
    return made


def _places(seen: Seen, kind: str) -> list[tuple[int, int]]:
    """Queue and offset of what came from the topic, or of what was consumed in vain before."""
    is_retried = kind == "retried"
    return [(m.queue_id, m.queue_offset) for m in seen.messages.copy() if (m.body == b"again") is is_retried]


def test_a_queue_whose_broker_cannot_be_asked_is_taken_once_it_can(tmp_path: Path) -> None:
    """Nothing is begun where it is not known how far the group is; the queues of other brokers are."""
    topic, group = "asked", "asking"
    with EmbeddedCluster(tmp_path, brokers=2) as cluster, Admin(name_server=cluster.name_server) as admin:
        beyond = cluster.brokers[1].address
        admin.create_topic(topic, queues=1)
        a, b = (MessageQueue(topic, name, 0) for name in ("broker-a", "broker-b"))
        with Producer("asked", name_server=cluster.name_server) as producer:
            for queue, number in itertools.product((a, b), range(3)):
                producer.send(Message(topic, b"%d" % number), queue)
        admin.offsets.reset(group, b, 1, force=True)
        gate = Proxy(beyond)
        gate.down()
        config = ClientConfig(
            name_server=cluster.name_server,
            rebalance_interval=0.1,
            connect_timeout=0.5,
            translate_address=lambda address: gate.address if address == beyond else address,
        )
        seen = Seen()
        consumer = PushConsumer(group, config=config, options=PushOptions(consume_from_where=STARTS[1]))
        consumer.subscribe(topic)
        consumer.register_message_listener(seen)
        with consumer:
            seen.wait(3)
            for _ in range(2):
                member_of(consumer).do_rebalance()  # further rounds do not take it, either
            assert {message.broker_name for message in seen.messages} == {"broker-a"}
            gate.up()
            seen.wait(5)
        gate.close()
        assert sorted((m.broker_name or "", m.queue_offset) for m in seen.messages) == [
            *(("broker-a", offset) for offset in range(3)),
            *(("broker-b", offset) for offset in (1, 2)),
        ]
