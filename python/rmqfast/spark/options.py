"""The options of `spark.read.format("rocketmq")`: names, texts to values, errors that name the choices."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rmqfast.errors import ArgumentError
from rmqfast.spark.offsets import Offsets, check_not_expired, offset_bounds, parse_offsets
from rmqfast.spark.partitions import PARTITION_BYTES, StoreRead
from rmqfast.store import ScanRequest, milliseconds
from rmqfast.store.request import MAX_BODY_BYTES

__all__ = ["OPTION_NAMES", "SourceOptions"]

_CLUSTER = ("nameServer", "group", "pullBatchSize", "pullTimeoutMs")


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """The options of the data source as values.

    Example:
        >>> SourceOptions.of({"storepath": "/data/store", "queueIds": "0, 1"}).queue_ids
        (0, 1)

    Source: `RocketMQConfig` of rocketmq-spark, whose names are kept.
    """

    store_path: str
    topic: str | None = None
    tags: str = "*"
    sql: str | None = None
    keys: tuple[str, ...] | None = None
    queue_ids: tuple[int, ...] | None = None
    starting_offsets: str = "earliest"
    ending_offsets: str = "latest"
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    columns: tuple[str, ...] | None = None
    min_partitions: int | None = None
    partition_bytes: int = PARTITION_BYTES
    fail_on_data_loss: bool = True
    verify_crc: bool = False
    max_body_bytes: int = MAX_BODY_BYTES
    broker_name: str | None = None
    commit_log_dirs: tuple[str, ...] = ()
    pushdown: bool = False
    io: Literal["pread", "mmap"] = "pread"

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Reads options; their names may be in any case.

        Args:
            options: As Spark gives them to a data source.

        Raises:
            ArgumentError: An unknown name, a text that is no such value, a value out of range.

        Example:
            >>> SourceOptions.of({"path": "/data/store", "subExpression": "A || B"}).tags
            'A || B'

        Source: `DataSource.options` of PySpark.
        """
        values: dict[str, Any] = {}
        for given, text in options.items():
            name = _name(given)
            field, parse = _PARSERS[name]
            if field in values:
                raise ArgumentError(f"option {name}: given twice, the other time as its alias")
            values[field] = parse(name, text)
        if "store_path" not in values:
            raise ArgumentError("option storePath: expected the directory of a store, got none")
        return cls(**values)

    def read(self, columns: Sequence[str] | None) -> StoreRead:
        """What shall be read, with offsets as the store now stands.

        Args:
            columns: Columns of the row, in order.

        Raises:
            CorruptError: A starting offset that has expired, unless `failOnDataLoss` is false.
            RmqError: As `StoreRead` and `open_store` raise.

        Source: as `SourceOptions`.
        """
        read = self._without_offsets(columns, None, None)
        start, end = self._offsets("startingOffsets"), self._offsets("endingOffsets")
        if start == "earliest" and end == "latest":
            return read
        queues = self._queues(read)
        first = offset_bounds("startingOffsets", start, queues, "start")
        if self.fail_on_data_loss:
            check_not_expired("startingOffsets", first, queues)
        last = offset_bounds("endingOffsets", end, queues, "end")
        return self._without_offsets(columns, first or None, last or None)

    def _offsets(self, name: Literal["startingOffsets", "endingOffsets"]) -> Offsets:
        text = self.starting_offsets if name == "startingOffsets" else self.ending_offsets
        return parse_offsets(name, text, self.topic, self.broker_name)

    def _queues(self, read: StoreRead) -> Mapping[int, tuple[int, int]]:
        if self.topic is None:
            raise ArgumentError("startingOffsets and endingOffsets need the option topic")
        with read.open() as store:
            return store.topics().get(self.topic, {})

    def _without_offsets(
        self, columns: Sequence[str] | None, start: Mapping[int, int] | None, end: Mapping[int, int] | None
    ) -> StoreRead:
        request = ScanRequest(
            topic=self.topic,
            queue_ids=self.queue_ids,
            tags=self.tags,
            sql=self.sql,
            keys=self.keys,
            start_offset=start,
            end_offset=end,
            start_time=self.starting_timestamp,
            end_time=self.ending_timestamp,
            columns=columns,
            microseconds=True,
            broker_name=self.broker_name,
            verify_crc=self.verify_crc,
            max_body_bytes=self.max_body_bytes,
        )
        return StoreRead(
            path=self.store_path,
            request=request,
            commit_log_dirs=self.commit_log_dirs,
            io=self.io,
            on_damage="fail" if self.fail_on_data_loss else "warn",
            min_partitions=self.min_partitions,
            partition_bytes=self.partition_bytes,
        )


def _name(given: str) -> str:
    names = {name.lower(): name for name in OPTION_NAMES}
    name = names.get(given.lower())
    if name is not None:
        return name
    cluster = {name.lower(): name for name in _CLUSTER}.get(given.lower())
    if cluster is not None:
        raise ArgumentError(f"option {cluster}: is a live cluster's; this source reads a store directory, storePath")
    near = [names[n] for n in difflib.get_close_matches(given.lower(), names, n=3)]
    hint = f"did you mean {', '.join(near)}? " if near else ""
    raise ArgumentError(f"unknown option {given}; {hint}the options are {', '.join(OPTION_NAMES)}")


def _text(name: str, text: str) -> str:
    if not text.strip():
        raise ArgumentError(f"option {name}: expected a text, got {text!r}")
    return text


def _topic(name: str, text: str) -> str:
    if "," in text:
        raise ArgumentError(f"option {name}: expected one topic, or no such option for all of them, got {text!r}")
    return _text(name, text.strip())


def _flag(name: str, text: str) -> bool:
    values = {"true": True, "false": False}
    if text.strip().lower() not in values:
        raise ArgumentError(f"option {name}: expected true or false, got {text!r}")
    return values[text.strip().lower()]


def _number(name: str, text: str, least: int = 1, most: int = 1 << 62) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise ArgumentError(f"option {name}: expected a number from {least} to {most}, got {text!r}")
    return value


def _body_bytes(name: str, text: str) -> int:
    return _number(name, text, most=1 << 30)


def _partitions(name: str, text: str) -> int:
    return _number(name, text, most=1_000_000)


def _time(name: str, text: str) -> int | None:
    try:
        return milliseconds(text.strip())
    except ArgumentError as error:
        raise ArgumentError(f"option {name}: {error}") from None


def _list(name: str, text: str) -> tuple[str, ...]:
    """Words between commas, or a JSON array for those that hold commas."""
    if not text.lstrip().startswith("["):
        words: Any = [word.strip() for word in text.split(",")]
    else:
        try:
            words = json.loads(text)
        except json.JSONDecodeError:
            raise ArgumentError(f"option {name}: expected a JSON array, got {text!r}") from None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise ArgumentError(f"option {name}: expected words between commas, or a JSON array of texts, got {text!r}")
    return tuple(words)


def _queue_ids(name: str, text: str) -> tuple[int, ...]:
    return tuple(_number(name, word, least=0, most=(1 << 31) - 1) for word in text.strip(" []").split(","))


def _io(name: str, text: str) -> str:
    if text not in {"pread", "mmap"}:
        raise ArgumentError(f"option {name}: expected pread or mmap, got {text!r}")
    return text


_PARSERS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "storePath": ("store_path", _text),
    "path": ("store_path", _text),  # what load(path) sets
    "topic": ("topic", _topic),
    "tags": ("tags", _text),
    "subExpression": ("tags", _text),
    "sql": ("sql", _text),
    "keys": ("keys", _list),
    "queueIds": ("queue_ids", _queue_ids),
    "startingOffsets": ("starting_offsets", _text),
    "endingOffsets": ("ending_offsets", _text),
    "startingTimestamp": ("starting_timestamp", _time),
    "endingTimestamp": ("ending_timestamp", _time),
    "columns": ("columns", _list),
    "minPartitions": ("min_partitions", _partitions),
    "partitionBytes": ("partition_bytes", _number),
    "failOnDataLoss": ("fail_on_data_loss", _flag),
    "verifyCrc": ("verify_crc", _flag),
    "maxBodyBytes": ("max_body_bytes", _body_bytes),
    "brokerName": ("broker_name", _text),
    "commitLogDirs": ("commit_log_dirs", _list),
    "pushdown": ("pushdown", _flag),
    "io": ("io", _io),
}
OPTION_NAMES = tuple(_PARSERS)
