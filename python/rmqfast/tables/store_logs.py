"""The logs of several brokers as one source of an ingest, such as the copies of a mirror."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqfast.paths import is_directory, list_directory
from rmqfast.store import Scan
from rmqfast.store.replica import newest_copy
from rmqfast.tables.source import Step
from rmqfast.tables.store_log import StoreLog

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqfast.message import Damage

_LOG = "commitlog"


class StoreLogs:
    """The messages of several stores, of one broker after the other. Its position has that of each by broker name.

    Args:
        logs: A log for each broker, at least one.
    """

    def __init__(self, logs: Mapping[str, StoreLog]) -> None:
        self._logs = dict(sorted(logs.items()))
        self._absent: list[str] = []

    @property
    def schema(self) -> pa.Schema:
        return next(iter(self._logs.values())).schema

    @property
    def losses(self) -> list[str]:
        return [f"broker {name}: {text}" for name, log in self._logs.items() for text in log.losses] + self._absent

    def initial(self) -> str:
        return json.dumps({name: json.loads(log.initial()) for name, log in self._logs.items()})

    def fix_end(self) -> str:
        return json.dumps({name: json.loads(log.fix_end()) for name, log in self._logs.items()})

    def next_step(self, start: str) -> Step | None:
        offsets: dict[str, Any] = json.loads(start)
        self._absent = [
            f"broker {name}: its store is not there any more; the table has it up to {json.dumps(offsets[name])}"
            for name in offsets.keys() - self._logs.keys()
        ]
        for name, log in self._logs.items():
            # a broker that was added begins at its first message
            step = log.next_step(json.dumps(offsets[name]) if name in offsets else log.initial())
            if step is not None:
                return _step_of(name, step, offsets)
        return None

    def step_between(self, start: str, end: str) -> Step:
        before, after = json.loads(start), json.loads(end)
        (name,) = (name for name in after if after[name] != before.get(name))
        log = self._logs[name]
        first = json.dumps(before[name]) if name in before else log.initial()
        return _step_of(name, log.step_between(first, json.dumps(after[name])), before)

    def scan(self, piece: Any) -> Scan:
        name, part = piece
        return self._logs[name].scan(part)

    def damage_behind(self, end: str) -> list[Damage]:
        offsets = json.loads(end)
        return [
            place
            for name, log in self._logs.items()
            if name in offsets
            for place in log.damage_behind(json.dumps(offsets[name]))
        ]

    def close(self) -> None:
        for log in self._logs.values():
            log.close()


def stores_below(directory: Path) -> dict[str, Path]:
    """Returns the stores in a directory by broker name: of a mirror the newest copies. Empty for a store itself."""
    if is_directory(directory / _LOG):
        return {}
    found = [path for path in list_directory(directory) if is_directory(path / _LOG)]
    # a copy that was begun anew stands beside the first one
    newest = {path: newest_copy(path) for path in found}
    later = {copy for path, copy in newest.items() if copy != path}
    return {path.name: copy for path, copy in newest.items() if path not in later}


def _step_of(name: str, step: Step, offsets: Mapping[str, Any]) -> Step:
    end = {**offsets, name: json.loads(step.end)}
    return Step(json.dumps(offsets), json.dumps(end), [(name, piece) for piece in step.pieces], step.lost)
