"""Values of others' libraries are taken where they mean something, and refused with what to write where they do not."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rmqfast
from rmqfast import (
    Admin,
    AppendOptions,
    ClientConfig,
    EmbeddedCluster,
    GetLimits,
    LitePullConsumer,
    Message,
    MessageStore,
    Mirror,
    MirrorOptions,
    Producer,
    PullConsumer,
    PushConsumer,
    RetentionOptions,
    TransactionProducer,
    aio,
)
from rmqfast.client.consumer import MessageSelector
from rmqfast.client.lite_pull import LitePullOptions
from rmqfast.client.producer import ProducerOptions
from rmqfast.client.pull import PullOptions
from rmqfast.client.push import PushOptions, PushTimings
from rmqfast.errors import ArgumentError, ArgumentTypeError, ExpressionWarning
from rmqfast.tables import ingest
from tests.golden_stores import PathOf

#: The store times of topic fx_q1 of the golden store lie between these.
BEFORE, AFTER = datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 23, tzinfo=UTC)


@pytest.fixture
def store(golden_store: PathOf) -> Iterator[MessageStore]:
    with rmqfast.open_store(golden_store("basic-4.9.4")) as opened:
        yield opened


def count(store: MessageStore, **arguments: Any) -> int:
    rows: int = store.scan("fx_q1", columns=["queue_offset"], **arguments).to_arrow().num_rows
    return rows


def forms(moment: datetime) -> dict[str, Any]:
    """A moment, a whole day of UTC, in all forms that it may be given in."""
    milliseconds = int(moment.timestamp() * 1000)
    return {
        "datetime": moment,
        "datetime without a zone": moment.replace(tzinfo=None),
        "date": moment.date(),
        "text": moment.isoformat(),
        "text of a number": str(milliseconds),
        "int": milliseconds,
        "float": float(milliseconds),
        "Decimal": Decimal(milliseconds),
        "int64": np.int64(milliseconds),
        "uint64": np.uint64(milliseconds),
        "float64": np.float64(milliseconds),
        "0-dimensional": np.array(milliseconds),
        "days": np.datetime64(moment.date()),
        "nanoseconds": np.datetime64(moment.replace(tzinfo=None), "ns"),
        "Timestamp": pd.Timestamp(moment),
        "Timestamp elsewhere": pd.Timestamp(moment).tz_convert("Asia/Shanghai"),
        "of a series": pd.Series([moment])[0],
    }


@pytest.mark.parametrize("form", forms(BEFORE))
def test_a_time_may_be_given_in_each_form(form: str, store: MessageStore, tmp_path: Path) -> None:
    before: Any = forms(BEFORE)[form]
    after: Any = forms(AFTER)[form]
    assert (count(store, start_time=before, end_time=after), count(store, end_time=before)) == (1259, 0)
    assert len(store.query("fx_plain", "Aa1", begin=before, end=after)) == 2
    assert [store.offset_for_time("fx_q1", 0, each) for each in (before, after)] == [0, 1259]
    assert store.export(tmp_path / "store", "fx_q1", start_time=before, end_time=after).rows == 1259
    assert ingest(store, tmp_path / "files", ["fx_q1"], start_time=before, end_time=after).rows == 1259
    assert Message("t", b"x", deliver_at=before).properties == {"TIMER_DELIVER_MS": str(int(BEFORE.timestamp() * 1000))}
    assert Message("t", b"x", born_timestamp=before).born_timestamp == int(BEFORE.timestamp() * 1000)


@pytest.mark.parametrize("form", ["datetime", "date", "text", "days", "Timestamp"])
def test_a_tail_starts_at_a_time(form: str, store: MessageStore) -> None:
    def rows(start: Any) -> int:
        with store.tail("fx_q1", start=start, stop="end", poll_interval=timedelta(milliseconds=1)) as tail:
            return sum(batch.num_rows for batch in tail)

    assert (rows(forms(BEFORE)[form]), rows(forms(AFTER)[form])) == (1259, 0)


def test_a_time_before_a_millisecond_belongs_to_the_one_before() -> None:
    born: list[Any] = [np.datetime64("1969-12-31T23:59:59.9999", "us"), Decimal("-0.1"), -0.1]
    assert [Message("t", b"x", born_timestamp=each).born_timestamp for each in born] == [-1, -1, -1]


NO_TIMES: dict[str, tuple[Any, str]] = {
    "NaT": (pd.NaT, "expected a time, got NaT, which is none: leave it out"),
    "NaT of NumPy": (np.datetime64("NaT"), "expected a time, got .*NaT.*, which is none"),
    "NaN": (float("nan"), "expected a time, got nan, which is none"),
    "NA": (pd.NA, "expected a time, got <NA>, which is none"),
    "infinite": (float("inf"), "expected a time: a datetime"),
    "true": (True, r"expected a time: .*got True \(bool\)"),
    "a duration": (timedelta(days=1), r"expected a time: .*\(timedelta\)"),
    "a duration of NumPy": (np.timedelta64(1, "D"), r"expected a time: .*\(timedelta64\)"),
    "a list": ([2026], r"expected a time: .*\(list\)"),
    "several": (np.array([1, 2]), r"expected a time: .*\(ndarray\)"),
    "noon": ("noon", "expected ISO 8601 as 2026-11-21T09:00:00, or milliseconds, got 'noon'"),
    "seconds": (
        1_795_231_240,
        "expected milliseconds since 1970, got 1795231240, which are seconds: write 1795231240000",
    ),
    "seconds as text": ("1795231240", "which are seconds: write 1795231240000"),
    "time.time()": (1_795_231_240.9, "which are seconds: write 1795231240000"),
    "epoch of a database": (Decimal("1795231240.903"), "which are seconds: write 1795231240000"),
    "microseconds": (1_795_231_240_903_000, "which are microseconds: write 1795231240903"),
    "time.time_ns()": (1_795_231_240_903_000_001, "which are nanoseconds: write 1795231240903"),
    "int64 of pandas": (pd.Timestamp("2026-11-21").value, "which are nanoseconds: write 1795219200000"),
}


@pytest.mark.parametrize(("given", "text"), NO_TIMES.values(), ids=NO_TIMES)
def test_what_is_no_time_is_refused_by_name(given: Any, text: str, store: MessageStore, tmp_path: Path) -> None:
    tries: dict[str, Callable[[], object]] = {
        "start_time": lambda: store.scan(start_time=given),
        "end_time": lambda: store.export(tmp_path / "out", end_time=given),
        "begin": lambda: store.query("fx_plain", "Aa1", begin=given),
        "when": lambda: store.offset_for_time("fx_q1", 0, given),
        "deliver_at": lambda: Message("t", b"x", deliver_at=given),
    }
    for name, ask in tries.items():
        with pytest.raises(ArgumentError, match=f"^{name}: .*{text}"):
            ask()


@pytest.mark.parametrize("number", [0, 1, -1, 86_400_000, 999_999_999, 4_000_000_000, 2**63 - 1, np.int64(0)])
def test_numbers_that_are_no_time_of_another_unit_stay(number: Any, store: MessageStore) -> None:
    assert count(store, start_time=number) in {0, 1259}


@pytest.mark.parametrize(
    "duration",
    [
        90,
        90.0,
        timedelta(seconds=90),
        np.timedelta64(90, "s"),
        np.float32(90),
        Decimal(90),
        pd.Timedelta("90s"),
        np.int8(90),
    ],
    ids=repr,
)
def test_a_duration_may_be_given_in_each_form(duration: Any) -> None:
    assert Message("t", b"x", delay=duration).properties == {"TIMER_DELAY_MS": "90000"}
    config = ClientConfig(name_server="a:1", request_timeout=duration, heartbeat_interval=duration)
    assert (config.request_timeout, config.heartbeat_interval) == (90.0, 90.0)
    assert LitePullOptions(poll_timeout=duration).poll_timeout == 90.0
    assert PushTimings(reset=duration).reset == 90.0
    assert AppendOptions(sync_flush_timeout=duration).sync_flush_timeout == 90.0


def test_minutes_of_a_consumer_may_be_a_timedelta() -> None:
    wait: Any = timedelta(minutes=5)
    assert PushOptions(consume_timeout=wait).consume_timeout == 5


def test_timeouts_of_calls_may_be_timedeltas() -> None:
    with EmbeddedCluster() as cluster:
        minute = timedelta(minutes=1)
        with (
            Producer("p", name_server=cluster.name_server) as producer,
            LitePullConsumer("c", name_server=cluster.name_server) as consumer,
        ):
            sent = producer.send(Message("orders", "paid"), timeout=minute)
            sends = [producer.send_async(Message("orders", b"new"), timeout=np.timedelta64(60, "s"))]
            assert producer.send_batch([Message("orders", b"x")], timeout=minute).status == sent.status
            assert sends[0].result().status == sent.status
            [queue] = [each for each in consumer.fetch_message_queues("orders") if each == sent.queue]
            consumer.assign([queue])
            consumer.seek_to_time(queue, date(2020, 1, 1))
            bodies: list[bytes] = []
            while b"paid" not in bodies:
                bodies += [message.body for message in consumer.poll(timeout=minute)]
            for wrong in ("3", -1, float("nan"), True):
                with pytest.raises(ArgumentError, match="timeout: expected seconds"):
                    producer.send(Message("orders", b"x"), timeout=wrong)  # type: ignore[arg-type]
                with pytest.raises(ArgumentError, match="timeout: expected seconds"):
                    consumer.poll(wrong)  # type: ignore[arg-type]
        with Admin(name_server=cluster.name_server, timeout=minute) as admin:
            assert admin.messages.by_key("orders", "none", begin_timestamp=np.datetime64("2020-01-01")) == []
            with pytest.raises(ArgumentError, match=r"begin_timestamp: .* which are seconds: write"):
                admin.messages.by_key("orders", "none", begin_timestamp=1_795_231_240)
            wrong_times: list[Any] = [pd.NaT, 1_795_231_240, "noon"]
            for when in wrong_times:
                with pytest.raises(ArgumentError, match=r"^when: expected"):
                    admin.offsets.reset_by_time("c", "orders", when)


OPTIONS: list[Callable[..., Any]] = [
    AppendOptions,
    GetLimits,
    RetentionOptions,
    ProducerOptions,
    PushOptions,
    PushTimings,
    LitePullOptions,
    PullOptions,
    MirrorOptions,
    lambda **named: ClientConfig(name_server="a:1", **named),
]


@pytest.mark.parametrize("options", OPTIONS)
def test_each_number_of_options_may_be_of_numpy_and_no_text(options: Callable[..., Any]) -> None:
    plain = options()
    for field in fields(plain):
        value = getattr(plain, field.name)
        if type(value) not in {int, float}:
            continue
        made = getattr(
            options(**{field.name: type(value)(value) if type(value) is float else np.int64(value)}), field.name
        )
        assert (type(made), made) == (type(value), value)
        for wrong in (str(value), [value], True if type(value) is int else "soon"):
            with pytest.raises(ArgumentError, match=f"^{field.name}: expected .*, got"):
                options(**{field.name: wrong})


@pytest.mark.parametrize("queue_ids", [0, [0], (np.int64(0),), np.array([0]), pd.Series([0]), range(1), np.int32(0)])
def test_queues_may_be_one_number_or_several(queue_ids: Any, store: MessageStore) -> None:
    assert count(store, queue_ids=queue_ids) == 1259


@pytest.mark.parametrize("tags", ["TagA || TagB", ["TagA", "TagB"], ("TagA", "TagB"), pd.Series(["TagA", "TagB"])])
def test_tags_may_be_an_expression_or_a_list(tags: Any, store: MessageStore) -> None:
    assert count(store, tags=tags) == count(store, tags="TagA") + count(store, tags="TagB")


def test_offsets_may_be_of_numpy(store: MessageStore) -> None:
    assert count(store, start_offset=np.int64(10), end_offset={np.int64(0): np.uint8(13)}) == 3
    assert [
        m.queue_offset for m in store.get("fx_q1", np.int8(0), np.int64(10), max_messages=np.int16(2)).messages
    ] == [10, 11]
    assert store.message_at(np.int64(334)).physical_offset == 334


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "queues as text": (
        {"queue_ids": "0"},
        r"queue_ids: .* got '0' \(str\): write queue_ids=\[0\]",
    ),
    "a queue of text": ({"queue_ids": ["0"]}, "queue_ids: expected an integer, got '0'"),
    "true": ({"queue_ids": [True]}, "queue_ids: expected an integer, got True"),
    "half": ({"queue_ids": 0.5}, "queue_ids: expected numbers of queues, got 0.5"),
    "no tags": ({"tags": []}, r"tags: expected a tag at least, got none: write '\*'"),
    "a number as tag": ({"tags": 1}, "tags: expected an expression as 'A || B', or a list of tags, got 1"),
    "no text as SQL": ({"sql": 5}, "sql: expected a text, got 5"),
    "one key": ({"keys": "k"}, r"keys: expected a sequence, got the one value 'k': write keys=\['k'\]"),
    "a number as keys": ({"keys": 5}, "keys: expected a sequence, got 5"),
    "one column": ({"columns": "body"}, r"write columns=\['body'\]"),
    "an offset as text": ({"start_offset": "1"}, "start_offset: expected a queue offset, or one by queue"),
    "an offset of a float": ({"end_offset": {0: 1.0}}, "end_offset: expected an integer, got 1.0"),
    "half a row": ({"batch_rows": 0.5}, "batch_rows: expected an integer, got 0.5"),
    "threads as text": ({"threads": "2"}, "threads: expected an integer, got '2'"),
    "yes": ({"verify_crc": "yes"}, "verify_crc: expected True or False, got 'yes'"),
    "a typo": ({"tag": "A"}, "unexpected keyword argument 'tag': did you mean tags"),
    "a name of another library": (
        {"partitions": [0]},
        "unexpected keyword argument 'partitions': did you mean queue_ids",
    ),
}


@pytest.mark.parametrize(("arguments", "text"), WRONG.values(), ids=WRONG)
def test_what_a_scan_cannot_take_is_refused_when_it_is_made(
    arguments: dict[str, Any], text: str, store: MessageStore
) -> None:
    with pytest.raises(ArgumentError, match=text.replace("||", r"\|\|")):
        store.scan("fx_q1", **arguments)


def test_look_ups_name_what_is_no_number(store: MessageStore) -> None:
    tries: dict[str, Callable[[Any], object]] = {
        "queue_id": lambda wrong: store.get("fx_q1", wrong, 0),
        "offset": lambda wrong: store.get("fx_q1", 0, wrong),
        "max_messages": lambda wrong: store.query("fx_q1", "k", max_messages=wrong),
        "physical_offset": store.message_at,
        "last": lambda wrong: store.tail(last=wrong),
        "topic": lambda _: store.get(["fx_q1"], 0, 0),  # type: ignore[arg-type]
    }
    for name, ask in tries.items():
        for wrong in ("0", 0.0, [0], True):
            with pytest.raises(ArgumentTypeError, match=f"^{name}: expected "):
                ask(wrong)


def test_a_message_takes_what_has_one_meaning() -> None:
    properties: dict[str, Any] = {"a": 1, "b": np.int64(2), "c": "3"}
    message = Message(
        "t",
        "grün",
        properties=properties,
        queue_id=np.int16(3),
        flag=np.uint8(4),
        delay_level=np.int32(5),
        keys=[],
    )
    assert message == Message("t", "grün".encode(), None, None, {"a": "1", "b": "2", "c": "3"}, 5, True, 3, 4)
    assert [type(each) for each in (message.queue_id, message.flag, message.delay_level)] == [int] * 3
    assert [Message("t", body).body for body in (bytearray(b"x"), memoryview(b"xy")[:1])] == [b"x", b"x"]
    assert Message("t", b"", properties=[("a", "1")]).properties == {"a": "1"}


MESSAGES: dict[str, tuple[dict[str, Any], str]] = {
    "a dict": ({"body": {"id": 1}}, r"body: expected bytes or a text, got a dict: write json.dumps\(body\)"),
    "a list": ({"body": [1, 2]}, r"body: expected bytes or a text, got a list"),
    "no body": ({"body": None}, "body: expected bytes or a text, got a NoneType: write b'' for none"),
    "a number": ({"body": 7}, "body: expected bytes or a text, got a int"),
    "tags": ({"tags": ["a"]}, r"tags: expected one tag, got \['a'\]: a message has one tag"),
    "two tags": ({"tags": "a||b"}, r"tags: expected one tag, got 'a\|\|b': no consumer could ask for it"),
    "a tag of numbers": ({"tags": 5}, "tags: expected a text, got 5"),
    "keys": ({"keys": [1]}, r"keys: expected a text, got 1 \(int\)"),
    "a key of bytes": ({"keys": b"k"}, "keys: expected a text or several, got b'k'"),
    "a flag of a property": ({"properties": {"a": True}}, r"properties: .* got True \(bool\) for 'a': write .*'True'"),
    "a missing property": ({"properties": {"a": None}}, r"properties: .* got None \(NoneType\) for 'a': leave it out"),
    "a float of a property": ({"properties": {"a": 0.5}}, r"properties: expected texts or integers, got 0.5 \(float\)"),
    "a name of a property": ({"properties": {1: "a"}}, r"properties: expected a text, got 1 \(int\)"),
    "a text as properties": ({"properties": "a=1"}, "properties: expected a mapping of texts, got 'a=1'"),
    "no topic": ({"topic": None}, r"topic: expected a text, got None"),
    "a queue": ({"queue_id": "3"}, r"queue_id: expected an integer, got '3' \(str\)"),
    "a level": ({"delay_level": 1.0}, "delay_level: expected an integer, got 1.0"),
    "a delay": ({"delay": "1s"}, "delay: expected seconds or a timedelta, got '1s'"),
    "a delay that is none": ({"delay": pd.NaT}, "delay: expected seconds"),
    "key": ({"key": "k"}, "Message: unexpected keyword argument 'key': did you mean keys?"),
    "headers": ({"headers": {}}, "Message: unexpected keyword argument 'headers': did you mean properties?"),
    "tag": ({"tag": "a"}, "Message: unexpected keyword argument 'tag': did you mean tags?"),
}


@pytest.mark.parametrize(("arguments", "text"), MESSAGES.values(), ids=MESSAGES)
def test_what_a_message_cannot_be_made_of_is_refused_there(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        Message(**({"topic": "t", "body": b"x"} | arguments))


def test_the_hint_for_a_dict_makes_a_body() -> None:
    assert json.loads(Message("t", json.dumps({"id": 1})).body) == {"id": 1}


def test_a_store_for_reading_says_how_to_append(store: MessageStore) -> None:
    anything: Any = store
    for name in ("append", "append_many", "append_batch", "flush", "clean"):
        with pytest.raises(
            ArgumentError, match=rf"mode: expected 'a' for {name}, got 'r': write open_store\(path, mode='a'\)"
        ):
            getattr(anything, name)(Message("t", b"x"))
        assert not hasattr(store, name)
    with pytest.raises(AttributeError, match="'MessageStore' object has no attribute 'appended'"):
        anything.appended  # noqa: B018 - asking is the test


CLIENTS: list[Any] = [
    Producer,
    TransactionProducer,
    PushConsumer,
    LitePullConsumer,
    PullConsumer,
    aio.Producer,
    aio.PushConsumer,
    aio.LitePullConsumer,
    aio.PullConsumer,
]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", ["bootstrap_servers", "namesrv_addr", "name_servers", "nameserver"])
def test_a_client_names_the_argument_that_was_meant(client: Any, name: str) -> None:
    with pytest.raises(ArgumentError, match=f"Consumer|Producer: unexpected .* '{name}': did you mean name_server?"):
        client("group", **{name: "10.0.0.1:9876"})


TYPOS: list[tuple[Any, dict[str, Any], str]] = [
    (Admin, {"bootstrap_servers": "a:1"}, "Admin: .*: did you mean name_server?"),
    (ClientConfig, {"nameserver": "a:1"}, "ClientConfig: .*: did you mean name_server?"),
    (AppendOptions, {"filesize": 1}, "AppendOptions: .*: did you mean file_size?"),
    (MirrorOptions, {"topic": "t"}, "MirrorOptions: .*: did you mean topics?"),
    (Mirror, {"option": 1}, "Mirror: .*: did you mean options?"),
    (EmbeddedCluster, {"broker": 2}, "EmbeddedCluster: .*: did you mean brokers?"),
    (rmqfast.open_store, {"path": "x", "mod": "a"}, "open_store: .*: did you mean mode?"),
    (PushConsumer, {"group": "g", "max_reconsume": 3}, "PushConsumer: .*: did you mean max_reconsume_times?"),
]


@pytest.mark.parametrize(("call", "named", "text"), TYPOS)
def test_an_argument_that_there_is_not_suggests_the_near_one(call: Any, named: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=text.replace("?", r"\?")) as refused:
        call(**named)
    assert isinstance(refused.value, TypeError)


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("queue_offset > 5", "queue_offset"),
        ("a = '1' AND store_timestamp > 3", "store_timestamp"),
        ("body IS NULL", "body"),
    ],
)
def test_sql_that_names_a_column_warns_where_it_was_written(sql: str, column: str, store: MessageStore) -> None:
    with pytest.warns(ExpressionWarning, match=f"{column} is a column, and SQL sees properties alone") as caught:
        store.scan("fx_q1", sql=sql)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(ExpressionWarning), store.tail("fx_q1", sql=sql, stop="end"):
        pass


def test_sql_of_a_selector_that_names_a_column_warns_where_it_was_written() -> None:
    with pytest.warns(
        ExpressionWarning, match="queue_offset is a column, .* write a filter on what was read"
    ) as caught:
        MessageSelector.by_sql("queue_offset > 5")
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(ExpressionWarning, match=r"tags is a column, .* write MessageSelector\.by_tag"):
        MessageSelector.by_sql("tags = 'A'")
    # whether it is an expression says the broker
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in ("a > 5", "no expression ("):
            assert MessageSelector.by_sql(other).expression == other


def test_sql_over_properties_does_not_warn(store: MessageStore) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert count(store, sql="a IS NULL OR TAGS = 'TagA'") > 0
