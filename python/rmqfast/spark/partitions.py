"""A read of a store, and the partitions that its tasks read in parallel.

Source: `MessageStore.plan`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from rmqfast.errors import ArgumentError
from rmqfast.paths import local_path
from rmqfast.store import MessageStore, ScanArguments, ScanRequest, StoreArguments, open_store
from rmqfast.store.request import check_names

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

    from rmqfast.message import Damage

__all__ = ["PARTITION_BYTES", "Partition", "StoreRead", "StoreReadArguments", "check_not_empty", "plan_partitions"]

PARTITION_BYTES = 256 << 20
_MOST_PARTITIONS = 1_000_000
#: Arguments of a read that its scan does not know.
_OWN = frozenset({"min_partitions", "partition_bytes", "on_damage", "damage", "commit_log_dirs", "io"})


class Partition(NamedTuple):
    """One task's share: a stretch of the commit log that no other task reads. A piece of `MessageStore.plan`."""

    way: str
    start: int
    end: int
    verify_crc: bool


class StoreReadArguments(StoreArguments, total=False):
    """Keyword arguments of what reads a store with Spark: `read_store`, `map_store`, `ingest`.

    An offset in `start_offset` by queue must not have expired.

    Attributes:
        min_partitions: At least so many partitions, where the log can be cut so often.
        partition_bytes: Bytes of the log that a partition reads, about. None is 256 MiB, and up to 1 GiB where Python
            workers would have more than four tasks a core.
        on_damage: "fail" ends the job when bytes of the log cannot be used, "warn" logs them to `rmqfast.spark`.
        damage: An accumulator of `rmqfast.spark.damage` that takes the damaged places, which then are not logged.
        broker_name: What the column `broker_name` shall say.
        commit_log_dirs: Directories of the commit log, where it is not below the store's.
        io: As in `open_store`.
    """

    min_partitions: int | None
    partition_bytes: int | None
    on_damage: Literal["fail", "warn"]
    damage: Accumulator[frozenset[Damage]] | None
    broker_name: str | None
    commit_log_dirs: Sequence[str | os.PathLike[str]]
    io: Literal["pread", "mmap"]


@dataclass(frozen=True, kw_only=True)
class StoreRead:
    """The place of the store and the messages to read, pickled to all tasks.

    Args:
        path: The store's directory, as every executor sees it.
        request: Which messages, which columns.
        commit_log_dirs: Directories of the commit log, where it is not below `path`.
        io: As in `open_store`.
        on_damage: "fail" ends the task that finds bytes it cannot use, "warn" logs them.
        damage: Takes the damaged places in place of the log.
        only_topic: Give only this topic's rows of a request for all topics.
        min_partitions: At least so many partitions, where the log can be cut so often.
        partition_bytes: Bytes of the log that a partition reads, about; None leaves it to the planning.

    Raises:
        ArgumentError: A value out of range.
    """

    path: str
    request: ScanRequest
    commit_log_dirs: tuple[str, ...] = ()
    io: Literal["pread", "mmap"] = "pread"
    on_damage: Literal["fail", "warn"] = "fail"
    damage: Accumulator[frozenset[Damage]] | None = None
    only_topic: str | None = None
    min_partitions: int | None = None
    partition_bytes: int | None = None

    @classmethod
    def of(cls, path: str | os.PathLike[str], topic: str | None, arguments: StoreReadArguments) -> StoreRead:
        """The read that keyword arguments ask for.

        Args:
            path: The store's directory.
            topic: Only this topic.
            arguments: The arguments.

        Raises:
            ArgumentError: A value out of range.
            TypeError: An argument that there is not.
        """
        check_names(arguments, StoreReadArguments)
        values: dict[str, Any] = dict(arguments)
        own = {name: values.pop(name) for name in _OWN & values.keys()}
        broker_name = values.pop("broker_name", None)
        request = ScanRequest.of(topic, cast("ScanArguments", values), broker_name=broker_name, microseconds=True)
        return cls(path=os.fspath(path), request=request, **own)

    def __post_init__(self) -> None:
        """Checks in the driver what would otherwise fail in every task."""
        object.__setattr__(self, "path", _local(self.path))
        object.__setattr__(self, "commit_log_dirs", tuple(_local(directory) for directory in self.commit_log_dirs))
        _check_choice("io", self.io, ("pread", "mmap"))
        _check_choice("on_damage", self.on_damage, ("fail", "warn"))
        _check_range("partition_bytes", 1 if self.partition_bytes is None else self.partition_bytes, 1 << 62)
        _check_range("min_partitions", 1 if self.min_partitions is None else self.min_partitions, _MOST_PARTITIONS)
        check_not_empty(self.request)

    def open(self) -> MessageStore:
        """Opens the store: in the driver to plan, in each task to read, so that new files are seen."""
        return open_store(self.path, commit_log_dirs=self.commit_log_dirs, io=self.io)


def plan_partitions(read: StoreRead, cores: int | None = None) -> list[Partition]:
    """Cuts a read into partitions: together they give each message once.

    Args:
        read: What is read; its planning looks at file names and at samples of the consume queues, not at messages.
        cores: Those of Python workers, who take long to begin with a partition: with more than four for each core,
            partitions of up to 1 GiB are made, unless the read says how large. Unknown, they are as many as here.

    Returns:
        Partitions in the order of the log, of about the same size; none where there is nothing to read.

    Raises:
        UnknownTopicError: The store has no such topic.
        ExpressionError: `tags` or `sql` does not parse.
        StoreError: The store cannot be read.
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


def check_not_empty(request: ScanRequest) -> None:
    """Raises ArgumentError for an empty list of columns or of properties: as an option it would mean all."""
    if request.columns == ():
        raise ArgumentError("columns: expected at least one, got none")
    if request.property_names == ():
        raise ArgumentError("property_names: expected at least one name, got none")


def _local(path: str | os.PathLike[str]) -> str:
    # every executor sees it under this path
    return os.path.abspath(local_path(path, "path"))  # noqa: PTH100  # executors have other working directories; links stay as they are


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArgumentError(f"{name}: expected {' or '.join(map(repr, choices))}, got {value!r}")


def _check_range(name: str, value: object, most: int) -> None:
    # True is an int in Python, and would be 1 partition
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ArgumentError(f"{name}: expected 1 to {most}, got {value!r}")
