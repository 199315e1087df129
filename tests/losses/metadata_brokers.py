"""Files that brokers left in `config/`, and every state that they once had."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Hashable, Mapping
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rmqfast.broker import Broker
from rmqfast.broker.metadata import Metadata
from rmqfast.store.config import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
    TopicConfig,
    TopicConfigTable,
)
from tests.embedded.client import broker_config

__all__ = ["TABLES", "LeftBehind", "State", "left_behind", "loaded", "parsed", "state_of"]

TABLES = (TopicConfigTable, SubscriptionGroupTable, ConsumerOffsetTable, DelayOffsetTable)
#: The entries of each file, by its name.
State = dict[str, dict[Hashable, Any]]
_GENERATIONS = 6
_TOPICS = 14


@dataclass
class LeftBehind:
    """A store whose broker ended.

    Attributes:
        root: The store.
        states: What the broker knew at each time, the last at its end.
        copies: The store as it was at some of these times, by their number.
    """

    root: Path
    states: list[State] = field(default_factory=list)
    copies: dict[int, Path] = field(default_factory=dict)

    @property
    def truth(self) -> State:
        return self.states[-1]


def loaded(root: Path) -> State:
    """The tables of a broker that starts on a store, by class."""
    with closing(Metadata(root)) as metadata:
        return state_of({table.FILE_NAME: metadata.load(table).to_json()[table.MEMBER] for table in TABLES})


def state_of(tables: Mapping[str, Mapping[Any, Any]]) -> State:
    """Entries with texts as keys, whatever read them."""
    return {file: {str(key): _value(value) for key, value in table.items()} for file, table in tables.items()}


def _value(value: Any) -> Any:
    return {str(key): inner for key, inner in value.items()} if isinstance(value, Mapping) else value


def parsed(text: bytes) -> Any:
    """The value of a file: JSON, but fastjson writes numbers as keys bare."""
    return json.loads(re.sub(rb"([{,]\s*)(-?\d+)(\s*:)", rb'\1"\2"\3', text))


def left_behind(directory: Path) -> list[LeftBehind]:
    """Brokers that were stopped, and that were killed before or after RocketMQ's files were written."""
    return [
        _run(directory / "stopped", unwritten=0, is_killed=False),
        _run(directory / "killed", unwritten=0, is_killed=True),
        _run(directory / "killed-behind", unwritten=2, is_killed=True),
    ]


def _run(directory: Path, *, unwritten: int, is_killed: bool) -> LeftBehind:
    alive = directory / "alive"
    left = LeftBehind(directory / "left")
    # a log, too: a broker does not start in a directory of another kind
    with Broker(broker_config(alive)):
        pass
    with closing(Metadata(alive)) as metadata:
        tables = [metadata.load(table) for table in TABLES]
        state = state_of({table.FILE_NAME: table.to_json()[table.MEMBER] for table in tables})
        for generation in range(_GENERATIONS):
            if generation == _GENERATIONS - unwritten:
                shutil.copytree(alive, directory / "files")
            _change(metadata, state, generation)
            left.states.append(deepcopy(state))
            if generation < _GENERATIONS - unwritten:
                metadata.write_files()
                _copy(alive, directory / f"copy-{generation}")
                left.copies[generation] = directory / f"copy-{generation}"
        if is_killed:
            _copy(alive, left.root)
    if not is_killed:
        _copy(alive, left.root)
    if unwritten:
        for path in (directory / "files" / "config").glob("*.json*"):
            shutil.copy(path, left.root / "config" / path.name)
    return left


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.tmp"))


def _change(metadata: Metadata, state: State, generation: int) -> None:
    """A generation of changes: entries that come, change and go."""
    for number in range(_TOPICS):
        topic = TopicConfig(
            topic_name=f"t{number}",
            read_queue_nums=1 + generation + number,
            write_queue_nums=1 + generation,
            perm=4 + 2 * (number % 2),
            order=generation % 2 == 1,
        )
        is_there = (number + generation) % 7 != 0
        _put(metadata, state, TopicConfigTable, topic.topic_name, topic.to_json() if is_there else None)
        group = SubscriptionGroupConfig(group_name=f"g{number}", retry_max_times=generation)
        _put(metadata, state, SubscriptionGroupTable, group.group_name, group.to_json() if is_there else None)
        _put(metadata, state, ConsumerOffsetTable, f"t{number}@g{number}", {"0": 100 * generation, "1": number})
    _put(metadata, state, DelayOffsetTable, str(1 + generation % 3), 10 * generation)
    metadata.put_member(TopicConfigTable, "dataVersion", {"timestamp": 1_700_000_000_000, "counter": generation})
    metadata.flush()


def _put(metadata: Metadata, state: State, table: type[Any], name: str, value: Any) -> None:
    metadata.put(table, name, value)
    if value is None:
        state[table.FILE_NAME].pop(name, None)
    else:
        state[table.FILE_NAME][name] = value
