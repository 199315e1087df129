"""The face of the native puller, which `rust/client/src/puller` and `rust/client/tests/puller.rs` test by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from rmqfast import EmbeddedCluster, Message, Producer
from rmqfast._native import Fetched, MessageView, Puller, fetched_to_arrow, messages_to_arrow
from rmqfast.errors import ChannelClosedError, UnknownColumnError
from rmqfast.message import MessageQueue
from tests.client.forks import refused_in_a_fork
from tests.client.pull.waiters import check_ends_by_ctrl_c
from tests.waiting import collect

QUEUE = MessageQueue("many", "broker-a", 0)
COUNT = 100


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster, Producer("p", name_server=cluster.name_server) as producer:
        producer.create_topic("many", 1)
        producer.send_many([Message("many", b"%d" % number, keys=f"k{number}") for number in range(COUNT)])
        yield cluster


@pytest.fixture
def puller() -> Iterator[Puller]:
    puller = Puller(consumer_group="g")
    yield puller
    puller.close()


def messages(puller: Puller, cluster: EmbeddedCluster) -> tuple[list[Fetched], list[MessageView]]:
    """The answers of the whole queue, and their messages."""
    puller.assign(QUEUE, cluster.brokers[0].address, 0, end=COUNT)
    fetched: list[Fetched] = []
    while not fetched or not fetched[-1].is_end:
        fetched += [item for item in collect(lambda: puller.take(1.0), 1) if isinstance(item, Fetched)]
    return fetched, [message for answer in fetched for message in answer.messages]


def test_pulled_messages_become_arrow_with_the_same_values(puller: Puller, cluster: EmbeddedCluster) -> None:
    fetched, views = messages(puller, cluster)
    table = pa.Table.from_batches([pa.record_batch(batch) for batch in fetched_to_arrow(fetched)])
    assert table.column("body").to_pylist() == [view.body for view in views] == [b"%d" % n for n in range(COUNT)]
    same = pa.table(pa.record_batch(messages_to_arrow(views)))
    assert same.drop_columns("properties").equals(table.combine_chunks().drop_columns("properties"))
    row = same.slice(7, 1).to_pylist()[0]
    assert (row["msg_id"], row["keys"], row["broker_name"]) == (views[7].msg_id, views[7].keys, "broker-a")
    with pytest.raises(UnknownColumnError, match="did you mean body"):
        fetched_to_arrow(fetched, ["boddy"])


def test_arrow_shows_messages_as_they_are_seen(puller: Puller, cluster: EmbeddedCluster) -> None:
    first, second, third, *_ = messages(puller, cluster)[1]
    seen = [third, first.seen_as("orders", 5), MessageView(second.record)]
    batch = pa.record_batch(messages_to_arrow(seen, ["topic", "reconsume_times", "broker_name", "queue_offset"]))
    assert batch.to_pydict() == {
        "topic": ["many", "orders", "many"],
        "reconsume_times": [0, 5, 0],
        "broker_name": ["broker-a", "broker-a", None],
        "queue_offset": [2, 0, 1],
    }
    empty = pa.record_batch(messages_to_arrow([], ["topic"], microseconds=True))
    assert (empty.num_rows, empty.schema.names) == (0, ["topic"])


def test_ctrl_c_ends_the_wait(puller: Puller) -> None:
    check_ends_by_ctrl_c(lambda: puller.take(3600.0), within="<lambda>")


def test_a_closed_puller_says_so(puller: Puller) -> None:
    puller.close()
    puller.close()
    with pytest.raises(ChannelClosedError, match="the puller is closed"):
        puller.take(1.0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_is_told_to_open_its_own(puller: Puller) -> None:
    assert "not in its fork" in refused_in_a_fork(lambda: puller.take(0.1))
