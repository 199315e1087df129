"""Rows by where they go: groups keep their order and the numbers of their rows."""

from __future__ import annotations

import pyarrow as pa

from rmqfast.spark.sink.row_groups import Target, groups_of, row_text


def test_rows_without_an_address_are_one_group_that_copies_nothing() -> None:
    body = pa.array([b"a", b"b"])
    (group,) = groups_of(pa.record_batch({"body": body}), 5, "t")
    assert group.target == Target("t")
    assert list(group.numbers) == [5, 6]
    assert group.rows.column("body").buffers()[2].address == body.buffers()[2].address


def test_rows_are_grouped_by_topic_broker_queue_and_delay() -> None:
    batch = pa.record_batch(
        {
            "body": ["a", "b", "c", "d", "e"],
            "topic": ["t", "u", "t", "t", "t"],
            "broker_name": [None, None, None, "b", None],
            "queue_id": [1, 1, 1, 1, None],
            "delay_level": [None, 0, 0, 0, 3],
        }
    )
    found = [(group.target, list(group.numbers), group.rows["body"].to_pylist()) for group in groups_of(batch, 0, None)]
    assert found == [
        (Target("t", None, 1, 0), [0, 2], ["a", "c"]),
        (Target("u", None, 1, 0), [1], ["b"]),
        (Target("t", "b", 1, 0), [3], ["d"]),
        (Target("t", None, None, 3), [4], ["e"]),
    ]
    assert {group.target.topic for group in groups_of(batch, 0, "other")} == {"other"}


def test_keys_of_an_array_are_joined_and_nulls_among_them_left_out() -> None:
    kinds = pa.list_(pa.string()), pa.list_(pa.large_string()), pa.large_list(pa.string())
    for kind in (*kinds, pa.list_(pa.field("element", pa.string(), nullable=False))):
        with_null = [["a", None, "b"], None, [None]] if kind.value_field.nullable else [["a", "b"], None, [""]]
        for keys in ([["a", "b"], None, []], with_null):
            batch = pa.record_batch({"body": ["x"] * 3, "keys": pa.array(keys, kind)})
            (group,) = groups_of(batch, 0, "t")
            assert group.rows["keys"].to_pylist() == ["a b", None, ""]


def test_a_row_is_told_shortened() -> None:
    kind = pa.map_(pa.string(), pa.string())
    batch = pa.record_batch(
        {
            "body": pa.array([b"\xff" * 1000, None]),
            "tags": ["T" * 1000, None],
            "keys": [["k"], None],
            "properties": pa.array([[(f"name{n}", "v" * 100) for n in range(50)], None], kind),
            "queue_id": [3, None],
        }
    )
    first, second = groups_of(batch, 40, "orders")
    text = row_text(first, 0)
    assert text.startswith("row 40 {topic: 'orders', queue_id: 3, body: 1000 bytes b'\\xff\\xff")
    assert "tags: 'TTTT" in text
    assert "keys: 'k'" in text
    assert len(text) < 700
    assert row_text(second, 0) == "row 41 {topic: 'orders', body: null}"
