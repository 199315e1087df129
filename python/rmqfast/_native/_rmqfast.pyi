"""The extension: a thin border to the store crate. Its users are `rmqfast.store` and `rmqfast.message` only."""

from collections.abc import Callable
from typing import Any, TypeAlias, final

from rmqfast.message import Message
from rmqfast.store.get_limits import GetLimits
from rmqfast.store.request import ScanRequest
from rmqfast.store.writer import AppendOptions

__all__ = ["COLUMNS", "Appender", "Scan", "Store", "Tail", "repair"]

COLUMNS: list[str]

_Piece: TypeAlias = tuple[str, int, int, bool]
_Damage: TypeAlias = tuple[int, int, str, str]
_Row: TypeAlias = dict[str, Any]
_Rows: TypeAlias = tuple[list[_Row], list[_Damage]]
_Options: TypeAlias = tuple[str | None, int]

@final
class Store:
    """A store directory, opened for reading."""

    @staticmethod
    def open(path: str, *, commit_log_dirs: list[str], io: str) -> Store: ...
    def plan(
        self, request: ScanRequest, *, way: str | None, cut_bytes: int, readers: int
    ) -> tuple[list[_Piece], int, str]: ...
    def scan(self, request: ScanRequest, *, way: str | None, threads: int) -> Scan: ...
    def scan_pieces(self, request: ScanRequest, pieces: list[_Piece]) -> Scan: ...
    def tail(
        self, request: ScanRequest, *, start: tuple[str, int], last: int, stop: int | None, poll_interval: float
    ) -> Tail: ...
    def topics(self) -> dict[str, dict[int, tuple[int, int]]]: ...
    def get(
        self,
        queue: tuple[str, int],
        offset: int,
        *,
        max_messages: int,
        tags: str,
        options: _Options,
        limits: GetLimits | None,
    ) -> tuple[str, tuple[int, int, int], bool, list[_Row], list[_Damage]]: ...
    def check_in_disk(self, queue: tuple[str, int], offset: int, *, limits: GetLimits) -> bool: ...
    def earliest_time(self, topic: str | None, queue_id: int | None) -> int | None: ...
    def offset_for_time(self, topic: str, queue_id: int, when: int, *, rule: str) -> int: ...
    def message_at(self, physical_offset: int, *, options: _Options) -> _Rows: ...
    def query(
        self, topic: str, key: str, *, max_messages: int, between: tuple[int, int], options: _Options
    ) -> _Rows: ...
    def message_by_id(self, id: str, *, topic: str | None, options: _Options) -> _Rows: ...  # noqa: A002
    def verify(self, *, crc: bool, progress: Callable[[int, int], object] | None) -> dict[str, Any]: ...
    def export(
        self,
        request: ScanRequest,
        out: str,
        *,
        sizes: tuple[AppendOptions | None, int],
        progress: Callable[[int, int], object] | None,
    ) -> dict[str, Any]: ...
    def info(self) -> dict[str, Any]: ...

@final
class Scan:
    """Batches of a scan; one consumer takes them."""

    def __arrow_c_stream__(self, requested_schema: object | None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def next_batch(self) -> object | None: ...
    @property
    def damage(self) -> tuple[list[_Damage], int]: ...

@final
class Tail:
    """Messages of a store as they come."""

    def next_batch(self, *, wait: bool) -> object | None: ...
    @property
    def position(self) -> int: ...
    @property
    def damage(self) -> tuple[list[_Damage], int]: ...
    @property
    def retained(self) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...

def repair(
    path: str, options: AppendOptions, *, progress: Callable[[int, int], object] | None
) -> tuple[int, int, int, int, int, int]: ...

@final
class Appender:
    """A store that is appended to."""

    @staticmethod
    def open(path: str, options: AppendOptions, *, progress: Callable[[int, int], object] | None) -> Appender: ...
    def recovered(self) -> tuple[int, int, int, int, int, int] | None: ...
    def append(
        self,
        message: Message,
        store_timestamp: int | None,
        born_host: str | None,
        sys_flag: int,
        reconsume_times: int,
        prepared_transaction_offset: int,
    ) -> tuple[int, int, int, str]: ...
    def append_batch(self, messages: list[Message], store_timestamp: int | None) -> list[tuple[int, int, int, str]]: ...
    def append_messages(self, messages: list[Message], *, store_timestamp: int | None) -> int: ...
    def append_arrow(self, batches: object, *, store_timestamp: int | None) -> int: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
