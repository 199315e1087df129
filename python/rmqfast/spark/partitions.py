"""A read of a store, and the partitions into which it is cut. Tasks read partitions in parallel.

Source: `MessageStore.plan`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from rmqfast._native import ddl_of
from rmqfast.errors import ArgumentError
from rmqfast.paths import local_path
from rmqfast.store import MessageStore, ScanArguments, ScanRequest, StoresReadArguments, open_store
from rmqfast.store.request import BodyArguments, DecodeArguments, check_names

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

    from rmqfast.message import Damage

PARTITION_BYTES = 256 << 20
_MOST_PARTITIONS = 1_000_000
#: Arguments of a read that are no arguments of its scan.
_OWN = frozenset({"min_partitions", "partition_bytes", "on_damage", "damage", "commit_log_dirs", "store_hosts", "io"})


class Partition(NamedTuple):
    """The part of the log that one task reads: one piece of `MessageStore.plan`. No other task reads it."""

    way: str
    start: int
    end: int
    verify_crc: bool


class MapArguments(StoresReadArguments, BodyArguments, total=False):
    """Keyword arguments of `map_store`, most of which the other functions that read a store with Spark have, too.

    An offset in `start_offset` by queue must not have expired.

    Attributes:
        min_partitions: Minimum number of partitions, if the log can be cut that often.
        partition_bytes: Approximate bytes of the log per partition. None is 256 MiB, or up to 1 GiB if Python workers
            would otherwise get more than four tasks per core.
        on_damage: "fail" ends the job if bytes of the log cannot be used, "warn" logs them to `rmqfast.spark`.
        damage: An accumulator of `rmqfast.spark.ingest` that collects the damaged places instead of the log.
        broker_name: Value of the column `broker_name`.
        commit_log_dirs: As in `open_store`, like `io`; of several stores, as in `open_stores`.
        store_hosts: Hosts that have the store on their own disks, where Spark runs its tasks if it can; of several
            stores by broker. Only the engine "columnar" can ask Spark for hosts.
    """

    min_partitions: int | None
    partition_bytes: int | None
    on_damage: Literal["fail", "warn"]
    damage: Accumulator[frozenset[Damage]] | None
    broker_name: str | None
    commit_log_dirs: Sequence[str | os.PathLike[str]] | Mapping[str, Sequence[str | os.PathLike[str]]]
    store_hosts: Sequence[str] | Mapping[str, Sequence[str]]
    io: Literal["pread", "mmap"]


class StoreReadArguments(MapArguments, DecodeArguments, total=False):
    """Keyword arguments of `read_store` and `ingest`; `MapArguments` and `DecodeArguments` explain the names."""


@dataclass(frozen=True, kw_only=True)
class StoreRead:
    """A store and the messages to read from it. It is pickled for all tasks.

    Attributes:
        path: The store's directory, as every executor sees it.
        only_topic: Keeps only this topic's rows of a request for all topics.
        partition_bytes: Approximate bytes of the log per partition; None lets the plan decide.
    """

    path: str
    request: ScanRequest
    commit_log_dirs: tuple[str, ...] = ()
    store_hosts: tuple[str, ...] = ()
    io: Literal["pread", "mmap"] = "pread"
    on_damage: Literal["fail", "warn"] = "fail"
    damage: Accumulator[frozenset[Damage]] | None = None
    only_topic: str | None = None
    min_partitions: int | None = None
    partition_bytes: int | None = None

    @classmethod
    def of(cls, path: str | os.PathLike[str], topic: str | None, arguments: StoreReadArguments) -> StoreRead:
        """Returns the read for keyword arguments. Raises `TypeError` for an unknown argument."""
        check_names(arguments, StoreReadArguments)
        values: dict[str, Any] = dict(arguments)
        own = {name: values.pop(name) for name in _OWN & values.keys()}
        broker_name = values.pop("broker_name", None)
        request = ScanRequest.of(topic, cast("ScanArguments", values), broker_name=broker_name, microseconds=True)
        return cls(path=os.fspath(path), request=request, **own)

    def __post_init__(self) -> None:
        """Checks in the driver the values that would otherwise fail in every task."""
        object.__setattr__(self, "path", _local(self.path))
        if isinstance(self.commit_log_dirs, Mapping):
            raise ArgumentError(f"commit_log_dirs: expected directories for one store, got {self.commit_log_dirs!r}")
        object.__setattr__(self, "commit_log_dirs", tuple(_local(directory) for directory in self.commit_log_dirs))
        if isinstance(self.store_hosts, str | Mapping) or not all(self.store_hosts):
            raise ArgumentError(f"store_hosts: expected names of hosts, got {self.store_hosts!r}")
        object.__setattr__(self, "store_hosts", tuple(self.store_hosts))
        _check_choice("io", self.io, ("pread", "mmap"))
        _check_choice("on_damage", self.on_damage, ("fail", "warn"))
        _check_range("partition_bytes", 1 if self.partition_bytes is None else self.partition_bytes, 1 << 62)
        _check_range("min_partitions", 1 if self.min_partitions is None else self.min_partitions, _MOST_PARTITIONS)
        check_not_empty(self.request)
        object.__setattr__(self, "request", with_schema_as_text(self.request))

    @property
    def place(self) -> str:
        """The broker, if its name is known, and the path of the store."""
        broker = self.request.broker_name
        return f"store {self.path}" if broker is None else f"broker {broker}, store {self.path}"

    def of_store(self, broker_name: str, path: str) -> StoreRead:
        """Returns the read of another broker's store."""
        return replace(self, path=path, request=replace(self.request, broker_name=broker_name))

    def open(self) -> MessageStore:
        """Opens the store. The driver and each task open it separately, so that they see new files."""
        return open_store(self.path, commit_log_dirs=self.commit_log_dirs, io=self.io)


def plan_partitions(read: StoreRead, cores: int | None = None) -> list[Partition]:
    """Cuts a read into partitions of similar size, in log order. Each message is in exactly one partition.

    `cores` counts the cores of Python workers, which start slowly: with more than four partitions per core, partitions
    grow up to 1 GiB unless the read sets their size. None means unknown. Planning reads file names and samples of the
    consume queues, no messages.
    """
    readers = cores or os.cpu_count() or 1
    with read.open() as store:
        pieces = store.partitions(
            read.request,
            least=read.min_partitions,
            piece_bytes=read.partition_bytes,
            readers=readers,
            worker_cores=cores,
        )
    return [Partition(*piece) for piece in pieces]


class StorePart(NamedTuple):
    """A part of the log of one store, in a read of one or several."""

    read: StoreRead
    partition: Partition


def plan_reads(reads: Sequence[StoreRead], cores: int | None = None) -> list[StorePart]:
    """Cuts the reads of the stores of one or several brokers into partitions. See `plan_partitions`."""
    share = None if cores is None else max(cores // len(reads), 1)
    parts = []
    for read in reads:
        least = None if read.min_partitions is None else -(-read.min_partitions // len(reads))
        parts += [StorePart(read, part) for part in plan_partitions(replace(read, min_partitions=least), share)]
    return parts


def with_topic(reads: Sequence[StoreRead]) -> list[StoreRead]:
    """Returns the reads of stores that have the topic. Of one store, and without a topic, all.

    Raises:
        UnknownTopicError: No store has the topic.
    """
    topic = reads[0].request.topic
    if topic is None or len(reads) == 1:
        return list(reads)
    having = []
    for read in reads:
        with read.open() as store:
            if store.has_topic(topic):
                having.append(read)
    if not having:
        with reads[0].open() as store:
            # raises the error of an unknown topic, with similar names
            store.plan(reads[0].request, cut_bytes=1 << 62)
    return having


def with_schema_as_text(request: ScanRequest) -> ScanRequest:
    """Returns the request with DDL in place of an Arrow schema, which an option cannot be."""
    schema: Any = request.schema
    return request if schema is None or isinstance(schema, str) else replace(request, schema=ddl_of(schema))


def check_not_empty(request: ScanRequest) -> None:
    """Raises `ArgumentError` for an empty list of columns. An empty option would mean all."""
    if request.columns == ():
        raise ArgumentError("columns: expected at least one, got none")


def _local(path: str | os.PathLike[str]) -> str:
    # Made absolute, since executors have other working directories.
    return os.path.abspath(local_path(path, "path"))  # noqa: PTH100  # executors have other working directories; links stay as they are


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArgumentError(f"{name}: expected {' or '.join(map(repr, choices))}, got {value!r}")


def _check_range(name: str, value: object, most: int) -> None:
    # True is an int in Python and would count as 1.
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ArgumentError(f"{name}: expected 1 to {most}, got {value!r}")
