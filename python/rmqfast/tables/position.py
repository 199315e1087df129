"""The position of an ingest: which messages a table has. It stands in the same commit as the rows.

Source: `SetTransaction` of the Delta protocol; the snapshot summaries of Iceberg's Kafka Connect sink.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rmqfast.errors import ArgumentError

#: The name under which tables keep the position.
KEY = "rmqfast.position"
_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The messages that an ingest selects. It cannot change, since a position says only how far they were read.

    Attributes:
        topics: Names of topics; None for all, or for those of the pattern.
        pattern: A regular expression of topics.
        tags: The tag expression.
        start_time: Earliest store time in milliseconds since 1970.
        end_time: Store time before which to stop.
    """

    topics: tuple[str, ...] | None
    pattern: str | None
    tags: str
    start_time: int | None
    end_time: int | None

    def check_equal(self, other: Selection, table: str) -> None:
        """Raises `ArgumentError` if a table was written with another selection."""
        for name, held in asdict(self).items():
            wanted = getattr(other, name)
            if wanted != held:
                raise ArgumentError(
                    f"{name}: expected {held!r}, with which {table} was begun, got {wanted!r}; "
                    "write these messages to another table"
                )


@dataclass(frozen=True, kw_only=True)
class Position:
    """The position of a table in its source.

    Attributes:
        offsets: Offsets of the source as JSON: the position in a store's log, or the next offset of each queue.
        selection: The messages that the table selects. None if only the offsets could be restored.
        start: Of a table of errors, the offsets at which the step of its last commit began.
    """

    offsets: str
    selection: Selection | None
    start: str | None = None

    def __post_init__(self) -> None:
        # one form, so that equal positions are equal
        for name in ("offsets", "start"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else json.dumps(json.loads(value)))

    def to_json(self) -> str:
        value: dict[str, Any] = {"version": _VERSION, "offsets": json.loads(self.offsets)}
        value["selection"] = None if self.selection is None else asdict(self.selection)
        return json.dumps(value if self.start is None else value | {"start": json.loads(self.start)})

    @classmethod
    def of_json(cls, text: str, table: str) -> Position:
        """Parses a position. Raises `ArgumentError` for that of a later release, and for anything else."""
        try:
            value: Any = json.loads(text)
            version = value["version"]
            if version == _VERSION:
                selection = value["selection"]
                if selection is not None:
                    topics = selection["topics"]
                    selection = Selection(**selection | {"topics": None if topics is None else tuple(topics)})
                start = json.dumps(value["start"]) if "start" in value else None
                return cls(offsets=json.dumps(value["offsets"]), selection=selection, start=start)
        except (ValueError, KeyError, TypeError) as error:
            raise ArgumentError(f"{table}: expected a position of rmqfast as {KEY}, got {text!r}") from error
        expected = f"expected a position of version {_VERSION}, got {version}"
        raise ArgumentError(f"{table}: {expected}: a newer release has written to it")

    @property
    def source(self) -> str:
        """The kind of source that the offsets are of: "a store", "stores of several brokers" or "a cluster"."""
        offsets: dict[str, Any] = json.loads(self.offsets)
        if isinstance(offsets.get("log"), int):
            return "a store"
        are_stores = offsets and all(isinstance(each.get("log"), int) for each in offsets.values())
        return "stores of several brokers" if are_stores else "a cluster"

    def numbers(self) -> dict[str, int]:
        """Returns each offset by its path, such as `log` or `orders/broker-a/0`."""
        return dict(_numbers(json.loads(self.offsets), ""))


def distance(start: str, end: str) -> int:
    """Returns how many messages, or bytes of a store's log, lie between two offsets of a source."""
    before = dict(_numbers(json.loads(start), ""))
    after = _numbers(json.loads(end), "")
    # a queue that was made anew ends before its old offset
    return sum(max(number - before.get(path, 0), 0) for path, number in after)


def with_numbers(offsets: str, numbers: Mapping[str, int]) -> str:
    """Returns offsets in which the numbers at some paths are replaced."""

    def replace(value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return {name: replace(each, f"{path}/{name}".lstrip("/")) for name, each in value.items()}
        return numbers.get(path, value)

    return json.dumps(replace(json.loads(offsets), ""))


def _numbers(value: Any, path: str) -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _numbers(each, f"{path}/{name}".lstrip("/"))
    else:
        yield path, int(value)
