"""The logs of several brokers as one source of an ingest, such as the copies of a mirror."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqfast.paths import is_directory, list_directory
from rmqfast.store import Scan
from rmqfast.store.replica import newest_copy
from rmqfast.store.scan_source import Piece
from rmqfast.tables.source import Step
from rmqfast.tables.store_log import StoreLog

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqfast.message import Damage

_LOG = "commitlog"


class BrokerOffsets:
    """The offsets of several logs, by broker name."""

    def __init__(self, logs: Mapping[str, StoreLog]) -> None:
        self._logs = logs
        self._absent: list[str] = []

    @property
    def losses(self) -> list[str]:
        told = [f"broker {name}: {text}" for name, log in self._logs.items() for text in log.offsets.losses]
        return told + self._absent

    def initial(self) -> str:
        return json.dumps({name: json.loads(log.offsets.initial()) for name, log in self._logs.items()})

    def fix_end(self) -> str:
        return json.dumps({name: json.loads(log.offsets.fix_end()) for name, log in self._logs.items()})

    def next_end(self, start: str) -> str | None:
        offsets: dict[str, Any] = json.loads(start)
        self._absent = [
            f"broker {name}: its store is not there any more; the table has it up to {json.dumps(offsets[name])}"
            for name in sorted(offsets.keys() - self._logs.keys())
        ]
        for name, log in self._logs.items():
            end = log.offsets.next_end(self.of_broker(name, start))
            if end is not None:
                return json.dumps({**offsets, name: json.loads(end)})
        return None

    def close(self) -> None:
        for log in self._logs.values():
            log.offsets.close()

    def of_broker(self, name: str, offsets: str) -> str:
        """Returns the offsets of one log. A broker that was added begins at its first message."""
        by_broker = json.loads(offsets)
        return json.dumps(by_broker[name]) if name in by_broker else self._logs[name].offsets.initial()


class StoreLogs:
    """The messages of several stores, of one broker after the other.

    Args:
        logs: A log for each broker, at least one.
    """

    def __init__(self, logs: Mapping[str, StoreLog]) -> None:
        self._logs = dict(sorted(logs.items()))
        self.offsets: BrokerOffsets = BrokerOffsets(self._logs)

    @property
    def schema(self) -> pa.Schema:
        return next(iter(self._logs.values())).schema

    def step_between(self, start: str, end: str) -> Step:
        before, after = json.loads(start), json.loads(end)
        pieces: list[tuple[str, Piece]] = []
        lost: list[Damage] = []
        for name, log in self._logs.items():
            if after.get(name) != before.get(name):
                step = log.step_between(self.offsets.of_broker(name, start), json.dumps(after[name]))
                pieces += [(name, piece) for piece in step.pieces]
                lost += step.lost
        return Step(start, end, pieces, lost)

    def scan(self, piece: tuple[str, Piece]) -> Scan:
        name, part = piece
        return self._logs[name].scan(part)

    def damage_behind(self, end: str) -> list[Damage]:
        return [
            place for name, log in self._logs.items() for place in log.damage_behind(self.offsets.of_broker(name, end))
        ]


def stores_below(directory: Path) -> dict[str, Path]:
    """Returns the stores in a directory by broker name: of a mirror the newest copies. Empty for a store itself."""
    if is_directory(directory / _LOG):
        return {}
    found = [path for path in list_directory(directory) if is_directory(path / _LOG)]
    # a copy that was begun anew stands beside the first one
    newest = {path: newest_copy(path) for path in found}
    later = {copy for path, copy in newest.items() if copy != path}
    return {path.name: copy for path, copy in newest.items() if path not in later}
