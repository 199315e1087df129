"""The source of a scan: a store's messages, as a whole or in pieces. Another process can open it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol, Self

from rmqfast import _native
from rmqfast.errors import ArgumentError
from rmqfast.store.explanation import ScanExplanation, explain_store
from rmqfast.store.request import ScanRequest
from rmqfast.system import usable_cores

Way = Literal["log", "queue"]
OnDamage = Literal["warn", "fail"]
# how files of the log are read: see `open_store`
StoreIo = Literal["auto", "pread", "mmap"]
#: A piece of a plan: way, first physical offset, end, whether to check the CRCs of bodies.
Piece = tuple[str, int, int, bool]

# bytes of the log in a piece that another process or an engine's partition reads
_PIECE_BYTES = 256 << 20


class ScanSource(Protocol):
    """Messages that a `Scan` reads. It can be pickled once it is planned."""

    def start(self, request: ScanRequest, limit: int | None) -> _native.Scan:
        """Starts to read. Raises an error if the request is invalid."""
        ...

    def count(self, request: ScanRequest) -> int | None:
        """Returns the number of messages if it is known without reading them."""
        ...

    def explain(self, request: ScanRequest, limit: int | None) -> ScanExplanation:
        """Tells what a scan reads that starts now. Reads no message."""
        ...

    def fix_messages(self, request: ScanRequest) -> Self:
        """Returns a source that always reads the same messages, also in another process and later."""
        ...

    def parts(self, request: ScanRequest) -> Sequence[Self]:
        """Returns sources that can be read independently of each other; together they have each message once."""
        ...

    def narrow(self, request: ScanRequest, predicate: object) -> tuple[Self, ScanRequest]:
        """Returns the source and the request without messages that surely do not match a predicate.

        The predicate is what `implied_filters` of the extension understands.
        """
        ...


@dataclass(frozen=True)
class StoreFiles:
    """The directories of a store, and how its files are read."""

    path: str
    commit_log_dirs: tuple[str, ...] = ()
    io: StoreIo = "pread"

    def open(self) -> _native.Store:
        """Opens a snapshot of the store."""
        return _native.Store.open(self.path, commit_log_dirs=list(self.commit_log_dirs), io=self.io, pinned=True)


@dataclass(frozen=True)
class StoreSource:
    """The messages of an opened store. `pieces` are those of a plan; None plans anew for each read.

    `is_pinned` is False for a store that is open for appending, whose end moves.
    """

    native: _native.Store
    files: StoreFiles
    way: Way | None = None
    threads: int = 1
    on_damage: OnDamage = "warn"
    pieces: tuple[Piece, ...] | None = None
    is_pinned: bool = True

    def __reduce__(self) -> tuple[object, ...]:
        # absolute, because another process may have another working directory
        files = replace(self.files, path=str(Path(self.files.path).absolute()))
        dirs = tuple(str(Path(each).absolute()) for each in files.commit_log_dirs)
        files = replace(files, commit_log_dirs=dirs)
        return _reopen, (files, self.way, self.threads, self.on_damage, self.pieces)

    def start(self, request: ScanRequest, limit: int | None) -> _native.Scan:
        fails = fails_on_damage(self.on_damage)
        if self.pieces is None:
            return self.native.scan(request, way=self.way, threads=self.threads, limit=limit, fails_on_damage=fails)
        return self.native.scan_pieces(request, self.pieces, threads=self.threads, limit=limit, fails_on_damage=fails)

    def count(self, request: ScanRequest) -> int | None:
        return self.native.count(request) if self.pieces is None else None

    def explain(self, request: ScanRequest, limit: int | None) -> ScanExplanation:
        return explain_store(
            self.native.explain(request, self.pieces, way=self.way, threads=self.threads),
            self.count(request),
            columns=_native.COLUMNS if request.columns is None else request.columns,
            threads=self.threads,
            limit=limit,
            io=self.files.io,
        )

    def fix_messages(self, request: ScanRequest) -> StoreSource:
        if self.pieces is not None:
            return self
        # without an end, the last piece would have later messages, too
        native = self.native if self.is_pinned else self.native.refreshed()
        pieces, _, _ = native.plan(request, way=self.way, cut_bytes=_PIECE_BYTES, readers=usable_cores())
        return replace(self, pieces=tuple(pieces))

    def parts(self, request: ScanRequest) -> list[StoreSource]:
        return [replace(self, pieces=(piece,), threads=1) for piece in self.fix_messages(request).pieces or ()]

    def narrow(self, request: ScanRequest, predicate: object) -> tuple[StoreSource, ScanRequest]:
        selection = _native.Selection(request)
        selection.take(_native.implied_filters(predicate))
        # a source without pieces has no messages
        source = replace(self, pieces=()) if selection.is_empty else self
        return source, request.with_selection(selection)


def _reopen(
    files: StoreFiles, way: Way | None, threads: int, on_damage: OnDamage, pieces: tuple[Piece, ...] | None
) -> StoreSource:
    return StoreSource(files.open(), files, way, threads, on_damage, pieces)


def fails_on_damage(on_damage: str) -> bool:
    """Whether a read ends at the first damage. Raises `ArgumentError` for anything but "warn" and "fail"."""
    if on_damage not in ("warn", "fail"):
        raise ArgumentError(f"on_damage: expected 'warn' or 'fail', got {on_damage!r}")
    return on_damage == "fail"
