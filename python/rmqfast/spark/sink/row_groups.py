"""Rows of a batch by where they go and when; each group is sent in its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["RowGroup", "Target", "groups_of", "row_text"]

_SENT = ("body", "tags", "keys", "properties", "flag")
_SHOWN = 48


class Target(NamedTuple):
    """Where rows go, and when; what is None is the sink's to choose."""

    topic: str | None
    broker_name: str | None = None
    queue_id: int | None = None
    delay_level: int = 0


class RowGroup(NamedTuple):
    """Rows of one target.

    Attributes:
        target: Where they go.
        rows: What is sent of them: `body`, and as there are `tags`, `keys`, `properties`, `flag`.
        numbers: Their numbers in the partition, from 0 on.
    """

    target: Target
    rows: pa.RecordBatch
    numbers: Sequence[int]

    def part(self, first: int, count: int) -> RowGroup:
        """So many rows from `first` on, as a group of the same target."""
        return RowGroup(self.target, self.rows.slice(first, count), self.numbers[first : first + count])


def groups_of(batch: pa.RecordBatch, first: int, topic: str | None) -> Iterator[RowGroup]:
    """The groups of a batch, by the first row of each.

    Args:
        batch: Columns of a sink.
        first: Number of its first row in the partition.
        topic: Where all of them go; None leaves it to the column.

    Example:
        >>> import pyarrow as pa
        >>> batch = pa.record_batch({"body": ["a", "b", "c"], "queue_id": [1, None, 1]})
        >>> [(group.target.queue_id, list(group.numbers)) for group in groups_of(batch, 100, "orders")]
        [(1, [100, 102]), (None, [101])]
    """
    rows = _sent(batch)
    count = batch.num_rows
    # the usual case: no value of a row is looked at in Python
    if not {"topic", "broker_name", "queue_id", "delay_level"} & set(batch.schema.names):
        yield RowGroup(Target(topic), rows, range(first, first + count))
        return
    topics = [topic] * count if topic is not None else _values(batch, "topic")
    # null is "at once", and must not be a group of its own
    levels = (level or 0 for level in _values(batch, "delay_level"))
    targets = zip(topics, _values(batch, "broker_name"), _values(batch, "queue_id"), levels, strict=True)
    indexes: dict[tuple[Any, ...], list[int]] = {}
    for index, target in enumerate(targets):
        indexes.setdefault(target, []).append(index)
    for values, places in indexes.items():
        # all of one target: nothing has to be copied
        taken = rows if len(places) == count else rows.take(_indexes(places))
        yield RowGroup(Target(*values), taken, [first + index for index in places])


def row_text(group: RowGroup, index: int) -> str:
    """A row for an error: its number, and its columns, shortened.

    Example:
        >>> import pyarrow as pa
        >>> (group,) = groups_of(pa.record_batch({"body": ["x" * 5000], "tags": ["A"]}), 7, "orders")
        >>> row_text(group, 0)
        "row 7 {topic: 'orders', body: 5000 bytes b'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'..., tags: 'A'}"
    """
    said = [f"{name}: {_short(value)}" for name, value in group.target._asdict().items() if value]
    for name in group.rows.schema.names:
        value = group.rows.column(name)[index].as_py()
        if name == "body" and value is not None:
            value = value if isinstance(value, bytes) else value.encode()
            said.append(f"body: {len(value)} bytes {_short(value)}")
        elif value is not None:
            said.append(f"{name}: {_short(dict(value) if name == 'properties' else value)}")
        elif name == "body":
            said.append("body: null")
    return f"row {group.numbers[index]} {{{', '.join(said)}}}"


def _sent(batch: pa.RecordBatch) -> pa.RecordBatch:
    """What becomes a message, as the encoder takes it."""
    import pyarrow as pa

    names = [name for name in _SENT if name in batch.schema.names]
    # RocketMQ has one property KEYS, with spaces between
    columns = [_joined(batch.column(name)) if name == "keys" else batch.column(name) for name in names]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _joined(keys: pa.Array) -> pa.Array:
    """Several keys as one text; nulls among them are left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_list(keys.type) or pa.types.is_large_list(keys.type)):
        return keys
    if keys.flatten().null_count == 0:
        # Spark's array(...) of what is never null has elements NOT NULL, which no kernel takes
        kind = pa.large_list if pa.types.is_large_list(keys.type) else pa.list_
        return pc.binary_join(keys.cast(kind(keys.type.value_type)), pa.scalar(" ", keys.type.value_type))
    lists = (None if each is None else [key for key in each if key is not None] for each in keys.to_pylist())
    return pa.array([None if each is None else " ".join(each) for each in lists], pa.string())


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    return batch.column(name).to_pylist() if name in batch.schema.names else [None] * batch.num_rows


def _indexes(places: list[int]) -> pa.Array:
    import pyarrow as pa

    return pa.array(places, pa.int32())


def _short(value: Any) -> str:
    if isinstance(value, (bytes, str)):
        return repr(value[:_SHOWN]) + ("..." if len(value) > _SHOWN else "")
    text = repr(value)
    return text if len(text) <= 4 * _SHOWN else text[: 4 * _SHOWN] + "..."
