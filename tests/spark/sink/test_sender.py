"""What a task sends is stored, at least once; what cannot be is told with its row. Both sinks say the same."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rmqfast
from rmqfast._native import Written
from rmqfast.broker.ports import ReservedPorts
from rmqfast.errors import ClientError, ForkError
from rmqfast.remoting import RemotingClient, RemotingServer, Request, RequestCode, Response, ResponseCode
from rmqfast.spark.sink import check_topic, send_partition
from tests.broker.certificates import make_authority
from tests.waiting import PATIENCE, until

from .engines import Engine, PythonEngine, sink
from .scene import Scene

PAIRS = pa.map_(pa.string(), pa.string())
PERM_READ = 4
BODY = pa.schema({"body": pa.binary()})


def test_all_columns_arrive(engine: Engine, scene: Scene) -> None:
    topic = scene.topic()
    columns = {
        "body": [b"\x00\xff", b"plain", b"last"],
        "tags": ["TägA", None, ""],
        "keys": pa.array([["k1", "k2"], None, ["k3"]], pa.list_(pa.string())),
        "properties": pa.array([[("n", "1"), ("empty", None)], None, [("größe", "é")]], PAIRS),
        "queue_id": pa.array([3, 1, 3], pa.int8()),
        "flag": pa.array([-5, None, 7], pa.int32()),
    }
    written = engine.send(scene, topic, columns)
    assert (written.rows, written.batches, written.retries, written.less_safe) == (3, 2, 0, 0)
    rows = sorted(scene.stored(topic), key=lambda row: (row["queue_id"], row["queue_offset"]))
    assert [(row["queue_id"], row["body"], row["tags"], row["keys"], row["flag"]) for row in rows] == [
        (1, b"plain", None, None, 0),
        (3, b"\x00\xff", "TägA", "k1 k2", -5),
        (3, b"last", None, "k3", 7),
    ]
    assert rows[1]["properties"]["n"] == "1"
    assert "empty" not in rows[1]["properties"]
    assert rows[2]["properties"]["größe"] == "é"


def test_rows_of_a_queue_keep_their_order_and_other_rows_go_to_all_queues(engine: Engine, scene: Scene) -> None:
    topic, count = scene.topic(queues=8), 1000
    given = {"body": [str(n) for n in range(count)], "queue_id": [n % 3 for n in range(count)]}
    written = engine.send(scene, topic, given, batch_size=33)
    assert (written.rows, written.batches) == (count, 3 * 11)
    for queue_id in range(3):
        bodies = [int(row["body"]) for row in scene.stored(topic) if row["queue_id"] == queue_id]
        assert bodies == list(range(queue_id, count, 3))
    topic = scene.topic(queues=8)
    engine.send(scene, topic, {"body": [str(n) for n in range(count)]}, batch_size=100)
    rows = scene.stored(topic)
    assert {row["queue_id"] for row in rows} == set(range(8))
    assert sorted(int(row["body"]) for row in rows) == list(range(count))


def test_several_batches_go_on_counting_rows(engine: Engine, scene: Scene) -> None:
    topic = scene.topic()
    batches = [{"body": [b"x"] * 10} for _ in range(3)]
    assert engine.send(scene, topic, *batches).rows == 30
    text = engine.refused(scene, topic, *batches, {"body": [b"x"] * 5 + [b""]})
    assert f"partition 0, row 35 {{topic: '{topic}', body: 0 bytes b''}}: expected a body of one byte or more" in text


def test_nothing_is_sent_of_no_rows(scene: Scene) -> None:
    nowhere = sink("127.0.0.1:1", "t", BODY)
    assert send_partition(nowhere, iter(())) == Written()
    assert send_partition(nowhere, [pa.record_batch({"body": pa.array([], pa.binary())})]) == Written()


def test_a_delayed_row_comes_later_and_is_not_in_a_batch(engine: Engine, scene: Scene) -> None:
    topic = scene.topic()
    given = {
        "body": ["now", "later", "latest"],
        "tags": ["a", "b", "c"],
        "delay_level": [0, 1, 2],
        "keys": ["k", "l", None],
        "properties": pa.array([None, [("n", "1")], None], PAIRS),
    }
    written = engine.send(scene, topic, given)
    assert (written.rows, written.batches) == (3, 3)
    until(lambda: len(scene.stored(topic)) == 3)
    rows = sorted(scene.stored(topic), key=lambda row: given["body"].index(row["body"].decode()))
    assert [(row["body"], row["tags"], row["keys"]) for row in rows] == [
        (b"now", "a", "k"),
        (b"later", "b", "l"),
        (b"latest", "c", None),
    ]
    assert rows[1]["properties"]["n"] == "1"
    for row, seconds in zip(rows, (0, 1, 2), strict=True):
        assert row["store_timestamp"] - row["born_timestamp"] >= timedelta(seconds=seconds)


WRONG_ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "a null body": ({"body": [b"x", None]}, "row 1 {topic: 'TOPIC', body: null}: expected a body of one byte or more"),
    "an empty text": ({"body": ["x", ""]}, "row 1 {topic: 'TOPIC', body: 0 bytes b''}: expected a body of one byte"),
    "a body that is too large": (
        {"body": [b"x", b"y", b"z" * 5000], "tags": ["a", "b", "large"]},
        f"row 2 {{topic: 'TOPIC', body: 5000 bytes b'{'z' * 48}'..., tags: 'large'}}: expected 2000 bytes at most",
    ),
    "a property that ends early": (
        {"body": [b"x", b"y"], "properties": pa.array([None, [("a", "x\x02y")]], PAIRS)},
        "row 1 {topic: 'TOPIC', body: 1 bytes b'y', properties: {'a': 'x\\x02y'}}: the property \"a\" has a character",
    ),
    "properties that are too long": (
        {"body": [b"x", b"y"], "tags": ["a", "t" * 40_000]},
        "row 1 {topic: 'TOPIC', body: 1 bytes b'y', tags: 'tttt",
    ),
    "a delay among properties": (
        {"body": [b"x"], "properties": pa.array([[("DELAY", "3")]], PAIRS)},
        "row 0 {topic: 'TOPIC', body: 1 bytes b'x', properties: {'DELAY': '3'}}: expected no DELAY",
    ),
    "a negative delay": (
        {"body": [b"x"], "delay_level": [-1]},
        "expected a delay_level of 1 or more, 0 or null for no",
    ),
    "a delayed row without a body": (
        {"body": [b"x", None], "delay_level": [1, 1]},
        "row 1 {topic: 'TOPIC', delay_level: 1, body: null}: the message body is null",
    ),
    "a queue that is not there": (
        {"body": [b"x", b"y"], "queue_id": [0, 9]},
        "queue_id: 9, body: 1 bytes b'y'}: topic TOPIC has no such queue that may be written to: queue_id 9, broker",
    ),
    "a broker that is not there": (
        {"body": [b"x"], "broker_name": ["broker-z"]},
        "has no such queue that may be written to: queue_id None, broker_name broker-z; broker-a has 0 to 3",
    ),
}


@pytest.mark.parametrize(("columns", "text"), WRONG_ROWS.values(), ids=WRONG_ROWS)
def test_a_row_that_cannot_be_sent_is_told(engine: Engine, scene: Scene, columns: dict[str, Any], text: str) -> None:
    topic = scene.topic()
    said = engine.refused(scene, topic, columns, max_message_size=2000 if "large" in str(columns) else 4 << 20)
    assert said.startswith("partition 0, row ")
    assert text.replace("TOPIC", topic) in said


def test_a_null_topic_and_a_topic_of_each_row(engine: Engine, scene: Scene) -> None:
    one, two = scene.topic(), scene.topic()
    given = {"body": [b"a", b"b", b"c"], "topic": [one, two, one]}
    assert engine.send(scene, None, given).rows == 3
    assert [[row["body"] for row in scene.stored(topic)] for topic in (one, two)] == [[b"a", b"c"], [b"b"]]
    check_topic(sink(scene.name_server, None, pa.record_batch(given).schema))
    assert "row 1 {body: 1 bytes b'b'}: expected a topic, got null" in engine.refused(
        scene, None, {"body": [b"a", b"b"], "topic": [one, None]}
    )


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Scene]:
    """A broker that takes 1,000 bytes at most and makes no topics."""
    config = {"maxMessageSize": "1000", "autoCreateTopicEnable": "false"}
    with Scene(tmp_path / "strict", config) as running:
        with rmqfast.Admin(name_server=running.name_server) as admin:
            for name in ("orders", "closed"):
                admin.create_topic(name, queues=2)
        yield running


def test_what_a_broker_refuses_is_told_with_its_code_and_its_words(engine: Engine, strict: Scene) -> None:
    """A batch that is too large for the broker is sent in parts; the row that is too large by itself is found."""
    written = engine.send(strict, "orders", {"body": [b"x" * 100] * 50})
    assert written.rows == 50
    assert written.batches > 7
    assert len(strict.stored("orders")) == 50
    text = engine.refused(
        strict, "orders", {"body": [b"x" * 100] * 20 + [b"y" * 1500] + [b"x"] * 20, "queue_id": [1] * 41}
    )
    assert "partition 0, row 20 {topic: 'orders', queue_id: 1, body: 1500 bytes b'yyyy" in text
    assert "queue 1 of broker-a: CODE: 13  DESC: " in text
    text = engine.refused(strict, "missing", {"body": [b"x"] * 3})
    assert "partition 0, row 0 {topic: 'missing', body: 1 bytes b'x'} and 2 more with it: " in text
    assert "No route info of this topic: missing\ncreate the topic" in text
    with pytest.raises(ClientError, match="No route info of this topic: missing\ncreate the topic"):
        check_topic(sink(strict.name_server, "missing", BODY))


def test_a_topic_that_may_not_be_written_to_any_more_is_told_with_the_broker_s_code(strict: Scene) -> None:
    """Brokers look at their own permission, and of ordered topics only; a topic's own is for clients to keep to."""
    with RemotingClient(strict.name_server) as client:
        ordered = {"namespace": "ORDER_TOPIC_CONFIG", "key": "closed", "value": "broker-a:2"}
        client.ask(RequestCode.PUT_KV_CONFIG, ordered)
    strict.stop()
    strict.start()

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"body": [b"first"] * 5})
        until(lambda: len(strict.stored("closed")) == 5)
        with RemotingClient(strict.cluster.brokers[0].address) as client:
            client.ask(RequestCode.UPDATE_BROKER_CONFIG, {}, b"brokerPermission=4")
        yield pa.record_batch({"body": [b"second"] * 5})

    with pytest.raises(ClientError) as caught:
        # a full request does not wait for more rows
        send_partition(sink(strict.name_server, "closed", BODY, batch_size=5), rows())
    text = str(caught.value)
    assert "partition 0, row 5 {topic: 'closed', body: 6 bytes b'second'} and 4 more with it: " in text
    assert "CODE: 16  DESC: " in text
    assert caught.value.response_code == 16
    assert [row["body"] for row in strict.stored("closed")] == [b"first"] * 5
    with rmqfast.Admin(name_server=strict.name_server) as admin:
        admin.create_topic("orders", queues=2, perm=PERM_READ)
    assert "No route info of this topic: orders" in PythonEngine().refused(strict, "orders", {"body": [b"x"]})


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Scene]:
    """Two brokers."""
    with Scene(tmp_path / "pair", brokers=2) as running:
        yield running


def test_with_two_brokers_a_queue_needs_the_name_of_its_broker(engine: Engine, pair: Scene) -> None:
    topic = pair.topic(queues=2)
    text = "queue_id 1, broker_name None: expected a broker_name, as several have it: broker-a, broker-b"
    assert text in engine.refused(pair, topic, {"body": [b"x"], "queue_id": [1]})
    given = {"body": [b"a", b"b", b"c"], "queue_id": [1, 1, None], "broker_name": ["broker-a", "broker-b", "broker-b"]}
    schema = pa.record_batch(given).schema
    check_topic(sink(pair.name_server, topic, schema))
    with pytest.raises(ClientError, match="expected a broker_name, as several have it"):
        check_topic(sink(pair.name_server, topic, schema.remove(schema.get_field_index("broker_name"))))
    assert engine.send(pair, topic, given).rows == 3
    rows = {(row["broker_name"], row["body"]): row["queue_id"] for row in pair.stored(topic)}
    assert rows.items() >= {("broker-a", b"a"): 1, ("broker-b", b"b"): 1}.items()
    assert ("broker-b", b"c") in rows


def test_what_a_broker_that_stopped_does_not_take_goes_to_the_other_one(pair: Scene) -> None:
    topic = pair.topic(queues=2)

    def brokers() -> set[str]:
        return {row["broker_name"] for row in pair.stored(topic)}

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"body": [str(n) for n in range(1000)]})
        until(lambda: brokers() == {"broker-a", "broker-b"})
        pair.cluster.brokers[1].stop()
        yield pa.record_batch({"body": [str(n) for n in range(1000, 2000)]})

    assert send_partition(sink(pair.name_server, topic, BODY, batch_size=100), rows()).rows == 2000
    assert {int(row["body"]) for row in pair.stored(topic)} == set(range(2000))


def once_a_sender_tried(then: Callable[[], object], caplog: pytest.LogCaptureFixture) -> threading.Thread:
    """Does something when a sender has found that nobody answers."""
    caplog.set_level(logging.INFO, "rmqfast.spark")
    caplog.clear()

    def wait() -> None:
        until(lambda: "tries again in" in caplog.text)
        then()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_no_row_is_missing_after_broker_and_name_server_were_restarted(
    own_scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    topic, count = own_scene.topic(), 2000
    schema = pa.schema({"body": pa.string(), "queue_id": pa.int32()})
    restarts: list[threading.Thread] = []

    def rows() -> Iterator[pa.RecordBatch]:
        for first in range(0, count, 50):
            bodies = [str(n) for n in range(first, first + 50)]
            yield pa.record_batch({"body": bodies, "queue_id": [n % 2 for n in range(50)]}, schema)
            if first == 500:
                own_scene.stop()
                restarts.append(once_a_sender_tried(own_scene.start, caplog))

    written = send_partition(sink(own_scene.name_server, topic, schema, batch_size=25), rows())
    restarts[0].join()
    assert written.rows == count
    assert written.retries > 0
    stored = own_scene.stored(topic)
    assert {int(row["body"]) for row in stored} == set(range(count))
    # what was sent once more has the id that it had before
    assert len({row["msg_id"] for row in stored}) == count


def test_a_task_waits_for_a_name_server_and_gives_up_in_time(
    own_scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    topic = own_scene.topic()
    own_scene.stop()
    text = PythonEngine().refused(own_scene, topic, {"body": [b"x"]}, retry_timeout_ms=100)
    assert "row 0 {topic: " in text
    assert f"tried for 0.1 s (retryTimeoutMs): connect to <{own_scene.name_server}> failed" in text
    restart = once_a_sender_tried(own_scene.start, caplog)
    assert PythonEngine().send(own_scene, topic, {"body": [b"x"]}).rows == 1
    restart.join()


def test_a_name_server_that_is_back_is_waited_for_until_its_brokers_are(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    topic, asked = scene.topic(), list[str]()

    def route(request: Request) -> Response:
        asked.append(request.ext_fields["topic"])
        # of the topic, and of that after which brokers make topics
        if len(asked) <= 2 * 2:
            return Response(ResponseCode.TOPIC_NOT_EXIST, "no broker yet")
        with RemotingClient(scene.name_server) as client:
            return Response(body=client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, request.ext_fields).body)

    ports = ReservedPorts("127.0.0.1")
    with RemotingServer({RequestCode.GET_ROUTEINFO_BY_TOPIC: route}) as server:
        address = f"127.0.0.1:{ports.port}"
        restart = once_a_sender_tried(lambda: server.listen(address), caplog)
        assert send_partition(sink(address, topic, BODY), [pa.record_batch({"body": [b"x"]})]).rows == 1
        restart.join()
    ports.release()
    assert caplog.text.count("s: No route info of this topic") == 2


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_has_its_own_writer_and_ids(scene: Scene) -> None:
    """PySpark's daemon forks a worker for each task."""
    topic, batch = scene.topic(), pa.record_batch({"body": [b"x"] * 10})
    sending = sink(scene.name_server, topic, BODY)
    writer = sending.open(0, (0, 1 << 62))
    writer.write(batch)
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(ForkError):
                writer.finish()
            del writer
            os._exit(0 if send_partition(sending, [batch]).rows == 10 else 1)
        except BaseException:  # noqa: BLE001 - a child must not go on with the parent's tests
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert writer.finish().rows == 10
    writer.close()
    assert len({row["msg_id"] for row in scene.stored(topic)}) == 20


def test_ctrl_c_ends_a_wait(own_scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    own_scene.stop()
    patient = sink(own_scene.name_server, "orders", BODY, retry_timeout_ms=86_400_000)
    ctrl_c = once_a_sender_tried(lambda: os.kill(os.getpid(), signal.SIGINT), caplog)
    with pytest.raises(KeyboardInterrupt):
        send_partition(patient, [pa.record_batch({"body": [b"x"]})])
    ctrl_c.join()


def test_ctrl_c_ends_the_driver_s_question() -> None:
    is_over = threading.Event()

    def route(_: Request) -> Response:
        os.kill(os.getpid(), signal.SIGINT)
        is_over.wait(PATIENCE)
        return Response()

    with RemotingServer({RequestCode.GET_ROUTEINFO_BY_TOPIC: route}) as server:
        asked = sink(server.listen("127.0.0.1:0"), "orders", BODY)
        with pytest.raises(KeyboardInterrupt):
            check_topic(asked)
        is_over.set()


ACCOUNTS = """\
accounts:
- accessKey: sparksink
  secretKey: "12345678"
  defaultTopicPerm: DENY
  topicPerms: [orders=PUB]
- accessKey: bossboss
  secretKey: "12345678"
  admin: true
"""


def test_an_account_may_send_where_it_may_and_is_told_where_not(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/plain_acl.yml").write_text(ACCOUNTS)
    config = {"aclEnable": "true", "rocketmqHome": str(tmp_path)}
    with Scene(tmp_path / "store", config) as scene:
        account = {"access_key": "sparksink", "secret_key": "12345678"}
        assert engine.send(scene, "orders", {"body": [b"x"] * 3}, **account).rows == 3
        assert len(scene.stored("orders")) == 3
        for topic, given in (("others", account), ("orders", account | {"secret_key": "87654321"}), ("orders", {})):
            text = engine.refused(scene, topic, {"body": [b"x"] * 3}, **given)
            assert f"row 0 {{topic: '{topic}', body: 1 bytes b'x'}} and 2 more with it: " in text
            # without an account the name server already tells no route
            why = f"topic {topic}, queue " if topic == "others" else f"No route info of this topic: {topic}"
            assert why in text
            assert ("CODE: 1  DESC: " if topic == "others" else "the name server says: ") in text
            assert "AclException" not in text
            assert "87654321" not in text


def test_connections_have_tls_where_a_file_of_authorities_is_given(engine: Engine, tmp_path: Path) -> None:
    authority = make_authority(tmp_path / "ca")
    server, client = authority.server(), authority.client()
    config = {
        "tls.server.mode": "enforcing",
        "tls.server.certPath": str(server.certificate),
        "tls.server.keyPath": str(server.key),
        "tls.client.certPath": str(client.certificate),
        "tls.client.keyPath": str(client.key),
        "tls.client.trustCertPath": str(authority.certificate),
        "useTLS": "true",
    }
    with Scene(tmp_path / "store", config) as scene:
        assert engine.send(scene, "orders", {"body": [b"x"] * 3}, tls_trust=str(authority.certificate)).rows == 3
        text = engine.refused(scene, "orders", {"body": [b"x"]}, retry_timeout_ms=100)
        assert f"tried for 0.1 s (retryTimeoutMs): connect to <{scene.name_server}> failed" in text


def test_rows_go_into_a_namespace(engine: Engine, scene: Scene) -> None:
    topic = f"MQ_INST_1_x%{scene.topic()}"
    assert engine.send(scene, topic.partition("%")[2], {"body": [b"x"]}, namespace="MQ_INST_1_x").rows == 1
    assert len(scene.stored(topic)) == 1


def test_the_threads_of_a_task_end_with_it(scene: Scene) -> None:
    sending, seen = {"rmqfast-sink", "rmqfast-lane"}, set[str]()

    def look() -> bool:
        seen.update(names_of_threads())
        return seen >= sending

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"body": [b"x"] * 10})
        until(look)
        yield pa.record_batch({"body": [b""]})

    with pytest.raises(ClientError, match="row 10 "):
        send_partition(sink(scene.name_server, scene.topic(), BODY, batch_size=10), rows())
    assert not names_of_threads() & sending


def names_of_threads() -> set[str]:
    """Of this process."""
    return {path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}
