"""Follows a store: yields messages when they are stored, from now or an earlier position on.

Source: RocketMQ's `MappedFileQueue`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Self, SupportsIndex

from rmqfast import _native
from rmqfast.arguments import Time, integer
from rmqfast.extras import import_extra
from rmqfast.message import Damage
from rmqfast.pickling import not_picklable
from rmqfast.store.damage_warning import CallerLine, describe
from rmqfast.store.request import milliseconds

if TYPE_CHECKING:
    import pyarrow as pa


class Retained(NamedTuple):
    """A range of the log that retention removed before the tail read it. Messages are missing, but nothing is damaged.

    Attributes:
        offset: Physical offset of its first byte.
        length: Length in bytes.
    """

    offset: int
    length: int


@not_picklable("open the store where it is used, and go on there from Tail.position")
class Tail:
    """New messages of a store as pyarrow record batches. Ends at `stop`, or when it is closed.

    While it waits, other threads run, Ctrl-C works, and any thread may close it. A fork of the process may not use it.

    Example:
        >>> import rmqfast
        >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
        >>> with store.tail("fx_q1", start="begin", columns=["body"]) as tail:
        ...     first = next(tail)
        >>> with store.tail("fx_q1", start=tail.position, columns=["body"], stop="end") as tail:
        ...     first.num_rows + sum(batch.num_rows for batch in tail)
        1259
    """

    def __init__(self, native: _native.Tail, *, warns: bool = True) -> None:
        self._native = native
        self._is_silent = not warns

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        batch = self._next_batch(wait=True)
        if batch is None:
            raise StopIteration
        return batch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def poll(self) -> pa.RecordBatch | None:
        """Returns the next batch without a wait. None if there is no batch yet.

        Raises:
            MissingExtraError: pyarrow is not installed.
            StoreError: The store is closed or cannot be read.
            CorruptError: Damage was found, with `on_damage="fail"`.

        Warns:
            DamageWarning: Bytes were damaged; it is issued once per tail.
        """
        return self._next_batch(wait=False)

    @property
    def position(self) -> int:
        """The physical offset at which `store.tail(start=position)` continues. No message is missing or repeated."""
        return self._native.position

    @property
    def damage(self) -> list[Damage]:
        """The damage found so far, at most 10,000 entries. Excludes the log's end, which may still be written."""
        return [Damage(*entry) for entry in self._native.damage[0]]

    @property
    def retained(self) -> list[Retained]:
        """The ranges of the log that retention removed before the tail read them."""
        return [Retained(*stretch) for stretch in self._native.retained]

    def close(self) -> None:
        """Ends the tail, even if another thread is waiting for its next batch."""
        self._native.close()

    def _next_batch(self, *, wait: bool) -> pa.RecordBatch | None:
        # before a batch is taken, which would be lost if warnings are errors
        self._warn_of_damage()
        # None: the tail has ended, or `wait` is False and there is nothing new
        batch = self._native.next_batch(wait=wait)
        if batch is None:
            self._warn_of_damage()
            return None
        return import_extra("pyarrow", "arrow").record_batch(batch)

    def _warn_of_damage(self) -> None:
        # only once per tail: `damage` lists all, and a tail may run for days
        if self._is_silent:
            return
        entries, more = self._native.damage
        if entries:
            self._is_silent = True
            CallerLine().warn(f"{describe(entries, more, when=' so far')}; Tail.damage lists them")


def start_of(start: Time) -> tuple[str, int]:
    """Returns the start of a tail as its kind and a number."""
    if isinstance(start, str) and start in ("end", "begin"):
        return start, 0
    if isinstance(start, SupportsIndex):
        return "position", integer("start", start, 0)
    return "time", milliseconds(start, name="start")
