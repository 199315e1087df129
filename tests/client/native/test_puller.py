"""The pipelined puller against a broker in this process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from rmqfast import EmbeddedCluster
from rmqfast._native import Fetched, MessageView, Puller, PullerEvent, fetched_to_arrow, messages_to_arrow
from rmqfast.errors import ChannelClosedError, UnknownColumnError
from rmqfast.message import MessageQueue
from tests.client.forks import refused_in_a_fork
from tests.client.pull.waiters import check_ends_by_ctrl_c
from tests.remoting.held_port import held_port
from tests.waiting import collect, until

from .senders import bodies, send_batch

COUNT = 3000


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """Topic `many` with 3000 messages in each of two queues; one in ten has TagA, one none, the others TagB."""
    with EmbeddedCluster() as cluster:
        for queue_id in (0, 1):
            messages = ((body, _properties(number)) for number, body in enumerate(bodies(COUNT)))
            send_batch(cluster.brokers[0].address, "many", queue_id, messages)
        yield cluster


def _properties(number: int) -> str:
    tags = "" if number % 10 == 1 else f"TAGS\x01{'TagA' if number % 10 == 0 else 'TagB'}\x02"
    return f"{tags}KEYS\x01k{number}\x02WAIT\x01true"


@pytest.fixture
def puller(cluster: EmbeddedCluster) -> Iterator[Puller]:
    puller = open_puller()
    yield puller
    puller.close()


@pytest.fixture
def broker(cluster: EmbeddedCluster) -> str:
    return cluster.brokers[0].address


def open_puller(**options: object) -> Puller:
    return Puller(consumer_group="g", **options)  # type: ignore[arg-type]


def queue(queue_id: int, topic: str = "many") -> MessageQueue:
    return MessageQueue(topic, "b", queue_id)


def take(puller: Puller, enough: Callable[[list[Fetched]], bool]) -> list[Fetched]:
    """Takes until it is enough."""
    taken: list[Fetched] = []

    def is_enough() -> bool:
        if enough(taken):
            return True
        taken.extend(item for item in puller.take(1.0) if isinstance(item, Fetched))
        return False

    until(is_enough, lambda: taken[-3:])
    return taken


def ended(queues: int) -> Callable[[list[Fetched]], bool]:
    return lambda taken: sum(fetched.is_end for fetched in taken) >= queues


def offsets(taken: list[Fetched]) -> dict[int, list[int]]:
    """Queue offsets by queue."""
    found: dict[int, list[int]] = defaultdict(list)
    for fetched in taken:
        found[fetched.queue.queue_id].extend(message.queue_offset for message in fetched.messages)
    return found


def test_queues_are_pulled_from_their_start_to_their_end(puller: Puller, broker: str) -> None:
    for queue_id in (0, 1):
        puller.assign(queue(queue_id), broker, 0, end=COUNT)
    taken = take(puller, ended(2))
    assert offsets(taken) == {0: list(range(COUNT)), 1: list(range(COUNT))}
    messages = [message for fetched in taken for message in fetched.messages]
    assert messages[0].queue == MessageQueue("many", "b", messages[0].queue_id)
    assert [m.body for m in messages if m.queue_id == 1] == bodies(COUNT)
    assert (messages[0].max_offset, messages[0].property("MAX_OFFSET")) == (COUNT, str(COUNT))
    assert puller.held == (0, 0)


def test_a_part_of_a_queue_ends_where_it_should(puller: Puller, broker: str) -> None:
    puller.assign(queue(0), broker, 1000, end=1777)
    assert offsets(take(puller, ended(1))) == {0: list(range(1000, 1777))}
    puller.assign(queue(1), broker, 0, end=100)  # whatever came behind the end would come before this
    assert offsets(take(puller, ended(1))) == {1: list(range(100))}


@pytest.mark.parametrize(("expression", "tags"), [("TagA", {"TagA"}), ("TagB", {"TagB"}), ("TagA || TagB", None)])
def test_the_broker_and_then_the_client_leave_out_what_has_another_tag(
    puller: Puller, expression: str, tags: set[str] | None, broker: str
) -> None:
    puller.assign(queue(0), broker, 0, end=COUNT, expression=expression, tags=tags)
    found = offsets(take(puller, ended(1)))[0]
    wanted = {"TagA": {0}, "TagB": {2, 3, 4, 5, 6, 7, 8, 9}}.get(expression, set(range(10)) - {1})
    assert found == [offset for offset in range(COUNT) if offset % 10 in wanted]


def test_tags_of_the_client_hold_where_the_broker_filters_by_nothing(puller: Puller, broker: str) -> None:
    puller.assign(queue(0), broker, 0, end=COUNT, tags={"TagA"})
    taken = take(puller, ended(1))
    assert offsets(taken) == {0: list(range(0, COUNT, 10))}
    assert sum(pa.record_batch(batch).num_rows for batch in fetched_to_arrow(taken, ["tags"])) == COUNT / 10


def test_what_came_becomes_arrow_with_the_values_of_the_messages(puller: Puller, broker: str) -> None:
    puller.assign(queue(0), broker, 0, end=COUNT)
    taken = take(puller, ended(1))
    messages = [message for fetched in taken for message in fetched.messages]
    table = pa.Table.from_batches([pa.record_batch(batch) for batch in fetched_to_arrow(taken)])
    assert table.column("body").to_pylist() == bodies(COUNT)
    assert set(table.column("broker_name").to_pylist()) == {"b"}
    same = pa.table(pa.record_batch(messages_to_arrow(messages)))
    assert same.drop_columns("properties").equals(table.combine_chunks().drop_columns("properties"))
    row = same.slice(7, 1).to_pylist()[0]
    assert row["msg_id"] == messages[7].msg_id
    assert row["keys"] == messages[7].keys == "k7"
    with pytest.raises(UnknownColumnError, match="did you mean body"):
        fetched_to_arrow(taken, ["boddy"])


def test_arrow_shows_messages_as_they_are_seen(puller: Puller, broker: str) -> None:
    puller.assign(queue(0), broker, 0, end=3)
    first, second, third = (m for fetched in take(puller, ended(1)) for m in fetched.messages)
    seen = [third, first.seen_as("orders", 5), MessageView(second.record)]
    batch = pa.record_batch(messages_to_arrow(seen, ["topic", "reconsume_times", "broker_name", "queue_offset"]))
    assert batch.to_pydict() == {
        "topic": ["many", "orders", "many"],
        "reconsume_times": [0, 5, 0],
        "broker_name": ["b", "b", None],
        "queue_offset": [2, 0, 1],
    }
    empty = pa.record_batch(messages_to_arrow([], ["topic"], microseconds=True))
    assert (empty.num_rows, empty.schema.names) == (0, ["topic"])


def test_a_message_that_comes_later_is_there_at_once(cluster: EmbeddedCluster, puller: Puller, broker: str) -> None:
    address = cluster.brokers[0].address
    send_batch(address, "later", 0, [(b"first", "")])
    puller.assign(queue(0, "later"), broker, 0)
    take(puller, lambda taken: any(fetched.status == "FOUND" for fetched in taken))
    send_batch(address, "later", 0, [(b"second", "")])
    taken = take(puller, lambda taken: any(fetched.status == "FOUND" for fetched in taken))
    assert [message.body for fetched in taken for message in fetched.messages] == [b"second"]


def test_after_a_seek_only_its_epoch_comes(puller: Puller, broker: str) -> None:
    first = puller.assign(queue(0), broker, 0)
    take(puller, lambda taken: len(taken) > 3)
    second = puller.seek(queue(0), COUNT - 5)
    assert second is not None
    assert second > first
    taken = take(puller, lambda taken: len(offsets(taken)[0]) >= 5)
    assert {fetched.epoch for fetched in taken} == {second}
    assert offsets(taken)[0] == list(range(COUNT - 5, COUNT))
    assert puller.seek(queue(9), 0) is None


def test_a_queue_that_is_paused_gives_what_it_has_and_no_more(broker: str) -> None:
    puller = open_puller(of_queue=(100, 1 << 20))  # not all of it, however late the pause
    assert not puller.pause(queue(0))
    puller.assign(queue(0), broker, 0, end=COUNT)
    assert puller.pause(queue(0))
    puller.assign(queue(1), broker, 0, end=COUNT)  # the paused queue's turn comes with each of this one's
    taken = take(puller, ended(1))
    assert [fetched.queue.queue_id for fetched in taken if fetched.is_end] == [1]
    assert puller.resume(queue(0))
    taken += take(puller, ended(1))
    assert offsets(taken)[0] == list(range(COUNT))
    assert puller.remove(queue(0))
    assert not puller.remove(queue(0))
    puller.close()


def test_a_queue_that_is_assigned_paused_is_asked_for_once_it_is_resumed(puller: Puller, broker: str) -> None:
    puller.assign(queue(0), broker, 0, end=10, paused=True)
    puller.assign(queue(1), broker, 0, end=COUNT)
    assert set(offsets(take(puller, ended(1)))) == {1}
    assert puller.resume(queue(0))
    assert offsets(take(puller, ended(1))) == {0: list(range(10))}


def test_no_more_is_held_than_is_allowed(broker: str) -> None:
    puller = open_puller(of_queue=(200, 1 << 20), depth=4)
    puller.assign(queue(0), broker, 0, end=COUNT)
    until(lambda: puller.held[0] >= 200)
    messages, size = puller.held
    assert 200 <= messages < 200 + 32
    assert size < messages * 400
    assert offsets(take(puller, ended(1)))[0] == list(range(COUNT))
    puller.close()


def test_what_is_in_hand_keeps_the_queue_from_being_asked_until_it_is_done(broker: str) -> None:
    puller = open_puller(of_queue=(50, 1 << 20), counts_until_done=True)
    epoch = puller.assign(queue(0), broker, 0, end=COUNT)
    taken: list[Fetched] = []
    most = done = 0
    while not taken or not taken[-1].is_end:
        came = [item for item in puller.take(5.0) if isinstance(item, Fetched)]
        taken += came
        most = max(most, puller.in_hand[0])
        for fetched in came:
            done += len(fetched)
            puller.done(epoch, len(fetched), fetched.size, fetched.next_begin_offset)
    assert (done, puller.in_hand) == (COUNT, (0, 0))
    assert most < 50 + 32
    assert puller.full_times > 0
    assert offsets(taken) == {0: list(range(COUNT))}
    puller.close()


def test_what_is_given_back_is_taken_once_more(broker: str, puller: Puller) -> None:
    puller.assign(queue(0), broker, 0, end=COUNT)
    first = take(puller, bool)
    for fetched in reversed(first):
        puller.give_back(fetched)
    assert offsets(take(puller, ended(1))) == {0: list(range(COUNT))}


def test_a_function_is_called_when_something_can_be_taken_and_at_the_end(broker: str) -> None:
    calls = [0]

    def on_ready() -> None:
        calls[0] += 1

    puller = open_puller(on_ready=on_ready)
    puller.assign(queue(0), broker, 0, end=10)
    until(lambda: puller.held[0] == 10)
    assert calls[0] > 0
    before = calls[0]
    puller.close()
    assert calls[0] > before


def test_an_offset_that_the_queue_does_not_have_is_told_with_where_to_go_on(puller: Puller, broker: str) -> None:
    puller.assign(queue(0), broker, COUNT + 10)
    (fetched,) = take(puller, bool)
    assert (fetched.status, fetched.code, fetched.next_begin_offset) == ("OFFSET_ILLEGAL", 21, COUNT)
    puller.seek(queue(0), fetched.next_begin_offset - 1)
    assert offsets(take(puller, lambda taken: bool(offsets(taken))))[0] == [COUNT - 1]


def test_what_the_broker_refuses_is_told_with_its_code(puller: Puller, broker: str) -> None:
    puller.assign(queue(0, "none"), broker, 0)
    (fetched,) = take(puller, bool)
    assert (fetched.status, fetched.code) == ("FAILED", 17)
    assert "topic[none] not exist" in fetched.remark
    assert "FAILED" in repr(fetched)


def test_a_broker_that_is_not_there_is_told_and_pulled_once_it_is() -> None:
    """`puller.rs` has connections that end under way."""
    with held_port() as address:
        puller = open_puller()
        puller.assign(queue(0, "t"), address, 0)
        (event,) = collect(lambda: puller.take(1.0), 1)
        assert isinstance(event, PullerEvent)
        assert not event.is_connected
        assert event.address == address
        assert address in event.reason
        with EmbeddedCluster(broker_port=int(address.rpartition(":")[2])):
            send_batch(address, "t", 0, [(body, "") for body in bodies(100)])
            assert offsets(take(puller, lambda taken: len(offsets(taken)[0]) == 100))[0] == list(range(100))
            puller.close()


def test_each_pull_has_its_fields_and_its_signature(broker: str) -> None:
    asked: list[tuple[int, dict[str, str], bytes]] = []

    def sign(code: int, fields: dict[str, str], body: bytes) -> dict[str, str]:
        asked.append((code, fields, body))
        if len(asked) == 1:
            raise LookupError("no key yet")
        return {"Signature": "s"}

    puller = open_puller(sign=sign, ext_fields={"AccessKey": "me"}, retry=0.05)
    puller.assign(queue(0), broker, 5, end=10, expression="TagB")
    taken = take(puller, ended(1))
    assert (taken[0].status, taken[0].code) == ("FAILED", -1)
    assert "no key yet" in taken[0].remark
    code, fields, body = asked[1]
    assert (code, body, fields["AccessKey"], fields["queueOffset"], fields["sysFlag"]) == (11, b"", "me", "5", "20")
    assert (fields["subscription"], fields["expressionType"], fields["consumerGroup"]) == ("TagB", "TAG", "g")
    puller.close()


def test_ctrl_c_ends_the_wait(puller: Puller) -> None:
    check_ends_by_ctrl_c(lambda: puller.take(3600.0), within="<lambda>")


def test_a_closed_puller_says_so_and_a_wait_ends(cluster: EmbeddedCluster) -> None:
    puller = open_puller()
    puller.close()
    puller.close()
    with pytest.raises(ChannelClosedError, match="the puller is closed"):
        puller.take(1.0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_is_told_to_open_its_own(puller: Puller) -> None:
    assert "not in its fork" in refused_in_a_fork(lambda: puller.take(0.1))
