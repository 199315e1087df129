"""The extension: a thin border to the store crate. Its users are `rmqfast.store` and `rmqfast.message` only."""

from typing import final

from rmqfast.store.request import ScanRequest

COLUMNS: list[str]

_Piece = tuple[str, int, int, bool]

@final
class Store:
    """A store directory, opened for reading."""

    @staticmethod
    def open(path: str, *, commit_log_dirs: list[str], io: str) -> Store: ...
    def plan(self, request: ScanRequest, *, way: str | None, cut_bytes: int) -> tuple[list[_Piece], int, str]: ...
    def scan(self, request: ScanRequest, *, way: str | None, threads: int) -> Scan: ...
    def scan_pieces(self, request: ScanRequest, pieces: list[_Piece]) -> Scan: ...

@final
class Scan:
    """Batches of a scan; one consumer takes them."""

    def __arrow_c_stream__(self, requested_schema: object | None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def next_batch(self) -> object | None: ...
    @property
    def damage(self) -> tuple[list[tuple[int, int, str, str]], int]: ...
