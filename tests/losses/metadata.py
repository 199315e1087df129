"""The broker's `config/` harmed: `metadata.db` with its log, and RocketMQ's files beside it.

A broker that starts on it has the topics, groups and offsets that were true last. Or, told by a warning that names the
file, what an older time had, or what a person who reads the harmed file finds there. Or it does not start, by an error
that names the file. `tests/broker/test_metadata_check.py` has what a check of the store says.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rmqfast.broker import Broker
from rmqfast.broker.metadata import Metadata
from rmqfast.broker.topics.topic_manager import broker_topics
from rmqfast.errors import RmqError
from rmqfast.store.config import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
    TopicConfig,
    TopicConfigTable,
)
from rmqfast.store.config.groups import built_in_groups
from tests.embedded.client import broker_config

from .attempt import Attempt, SilentLoss, logged
from .harms import FILE_HARMS, NUMBERS, edit_json

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


#: Begins the words of a harm that puts an older file in its place.
OLDER = "older copy of"
_PAGE = 4096
_WAL_HEADER, _WAL_FRAME = 32, 24 + _PAGE
_TEXTS = ("{}", "null", "[]", "0", '""', "{", "\ufeff{}", '{"offsetTable":{}}', '{"topicConfigTable":{}}')
_VALUES = (*map(str, NUMBERS), "1e400", "1.5", "null", '"7"', "true", "[]", "{}")


def harm(left: LeftBehind, root: Path, chance: random.Random) -> str:
    """Harms a file of a copy of a store, and tells in words how."""
    files = sorted(path for path in (root / "config").iterdir() if path.is_file())
    if not files:
        return "none is left"
    path = chance.choices(files, [6 if "metadata" in path.name else 1 for path in files])[0]
    if chance.random() < 0.5:
        kinds, weights = zip(*FILE_HARMS, strict=True)
        words = chance.choices(kinds, weights)[0](chance, path)
    else:
        words = chance.choice(_OF_TEXT if ".json" in path.name else _OF_DATABASE)(left, path, chance)
    return f"{words or 'nothing to change'}: {path.name}"


def _older(left: LeftBehind, path: Path, chance: random.Random) -> str:
    generation = chance.choice(sorted(left.copies))
    source = left.copies[generation] / "config" / path.name
    if source.exists():
        shutil.copy(source, path)
    else:
        path.unlink()
    return f"{OLDER} generation {generation}{'' if source.exists() else ', which has none'}"


def _older_log(left: LeftBehind, path: Path, chance: random.Random) -> str:
    """The write-ahead log of an older time, beside the database as it is."""
    generation = chance.choice(sorted(left.copies))
    shutil.copy(left.copies[generation] / "config" / "metadata.db-wal", path.with_name("metadata.db-wal"))
    return f"{OLDER} generation {generation} of the log beside"


def _other_page(_: LeftBehind, path: Path, chance: random.Random) -> str:
    return _write_page(path, chance, chance.choice((bytes(_PAGE), chance.randbytes(_PAGE))))


def _write_page(path: Path, chance: random.Random, page: bytes) -> str:
    text = bytearray(path.read_bytes())
    number = chance.randrange(len(text) // _PAGE + 1)
    text[number * _PAGE : (number + 1) * _PAGE] = page[: max(len(text) - number * _PAGE, 0)]
    path.write_bytes(text)
    return f"another page {number}"


def _swap_pages(_: LeftBehind, path: Path, chance: random.Random) -> str:
    text = path.read_bytes()
    pages = [text[at : at + _PAGE] for at in range(0, len(text), _PAGE)]
    if len(pages) > 1:
        first, second = chance.sample(range(len(pages)), 2)
        pages[first], pages[second] = pages[second], pages[first]
    path.write_bytes(b"".join(pages))
    return "pages swapped"


def _old_page(left: LeftBehind, path: Path, chance: random.Random) -> str:
    """A page as it was, a write that never reached the disk."""
    source = left.copies[chance.choice(sorted(left.copies))] / "config" / path.name
    old = source.read_bytes() if source.exists() else b""
    number = chance.randrange(len(old) // _PAGE + 1)
    page = old[number * _PAGE : (number + 1) * _PAGE]
    return f"{OLDER} a page: {_write_page(path, random.Random(number), page)}"


def _cut_frames(_: LeftBehind, path: Path, chance: random.Random) -> str:
    """Cut where a page, or a frame of the log, begins."""
    text = path.read_bytes()
    header, size = (_WAL_HEADER, _WAL_FRAME) if path.name.endswith("-wal") else (0, _PAGE)
    pieces = max((len(text) - header) // size, 0)
    path.write_bytes(text[: header + size * chance.randrange(pieces + 1)])
    return f"pages cut off of {pieces}"


def _number(_: LeftBehind, path: Path, chance: random.Random) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    numbers = list(re.finditer(r"\d+", text))
    if not numbers:
        return "no number to change"
    found, other = chance.choice(numbers), chance.choice((*_VALUES, str(chance.randrange(1000))))
    path.write_text(text[: found.start()] + other + text[found.end() :], encoding="utf-8")
    return f"{found.group()} at {found.start():,} became {other}"


def _edit(_: LeftBehind, path: Path, chance: random.Random) -> str | None:
    try:
        value = parsed(path.read_bytes())
    except ValueError:
        return None
    words = edit_json(chance, value)
    path.write_text(json.dumps(value), encoding="utf-8")
    return words


def _other_text(_: LeftBehind, path: Path, chance: random.Random) -> str:
    path.write_text(text := chance.choice(_TEXTS), encoding="utf-8")
    return f"{text!r} in its place"


_Kind = Callable[[LeftBehind, Path, random.Random], str | None]
_OF_DATABASE: list[_Kind] = [
    *(_older, _other_page, _swap_pages, _older_log),
    *[_old_page] * 2,
    *[_cut_frames] * 2,
]
_OF_TEXT: list[_Kind] = [_older, _other_text, *[_number] * 2, *[_edit] * 3]


#: One of so many attempts starts a broker; the others use the class by which it keeps what it knows.
_BROKERS = 10
_BUILT_IN = {topic.topic_name for topic in broker_topics(broker_config(Path("unused")))} | {
    group.group_name for group in built_in_groups()
}
_FILES = [table.FILE_NAME for table in TABLES]


class MetadataSubject:
    """Stores of brokers that were stopped or killed."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="losses-metadata-sources-"))
        self._sources = left_behind(self._directory)
        for left in self._sources:
            left.states = [_own(state) for state in left.states]

    def close(self) -> None:
        shutil.rmtree(self._directory)

    def attempt(self, chance: random.Random, directory: Path) -> Attempt:
        """Harms one, and starts on it."""
        left = chance.choice(self._sources)
        root = directory / "store"
        shutil.copytree(left.root, root)
        harms = [harm(left, root, chance) for _ in range(chance.choice((1, 1, 2, 3)))]
        start = _served if chance.randrange(_BROKERS) == 0 else loaded
        where = f"{left.root.parent.name}, {start.__name__.strip('_')}: {'; '.join(harms)}"
        readable = {table.FILE_NAME: list(_readable(root, table)) for table in TABLES}
        with logged() as told:
            try:
                state = _own(start(root))
            except RmqError as error:
                _check_refusal(where, str(error), root)
                return Attempt(where, rows=0, missing=0, refused=True)
            except Exception as error:
                raise SilentLoss(f"{where}: expected an error of rmqfast, got {error!r}") from error
        started = _Started(where, left, harms, readable, told)
        attempt = started.judged(state)
        started.check_next(root, state)
        return attempt


@dataclass(frozen=True)
class _Started:
    """A start on a harmed store.

    Args:
        where: The harm and the start, for the error.
        left: What was harmed.
        harms: How.
        readable: What a person finds in each file or its backup.
        told: What the log said.
    """

    where: str
    left: LeftBehind
    harms: Sequence[str]
    readable: dict[str, list[Any]]
    told: Sequence[str]

    def judged(self, state: State) -> Attempt:
        rows = missing = 0
        for file, truth in self.left.truth.items():
            entries = state[file]
            rows += len(entries)
            missing += len(truth.keys() - entries.keys())
            if entries != truth:
                self._judge_differences(file, truth, entries)
        return Attempt(self.where, rows=rows, missing=missing, refused=False)

    def _judge_differences(self, file: str, truth: dict[Any, Any], entries: dict[Any, Any]) -> None:
        lost = f"{self.where}: {file} differs in {sorted(_differences(truth, entries))[:3]}"
        is_once_true = any(entries == older[file] for older in self.left.states)
        is_empty_told = not entries and any("and so empty" in text and file in text for text in self.told)
        # an older database, and none of RocketMQ's files that could be read
        is_older_told = not entries and any("of an earlier time" in text for text in self.told)
        if not (is_once_true or is_empty_told or is_older_told or entries in self.readable[file]):
            raise SilentLoss(f"{lost}, which nobody ever wrote: {entries}; told: {self.told}")
        if not any(file in text or "metadata.db" in text for text in self.told) and not self._is_unknowable():
            raise SilentLoss(f"{lost}, and nobody is told: {self.told}")

    def _is_unknowable(self) -> bool:
        """Whether the count of changes was put back with the database, or is gone with it: then all fits together."""
        is_restored = any(text.startswith(OLDER) and "metadata.db-count" in text for text in self.harms)
        return is_restored or {"removed: metadata.db", "removed: metadata.db-count"} <= set(self.harms)

    def check_next(self, root: Path, state: State) -> None:
        """The next start finds what this one had, and so does a broker of Java in its files."""
        again = _own(loaded(root))
        in_files = _own(state_of({table.FILE_NAME: table.load(root).to_json()[table.MEMBER] for table in TABLES}))
        for file, entries in state.items():
            if again[file] != entries:
                differences = _differences(entries, again[file])
                raise SilentLoss(f"{self.where}: the next start has another {file}: {differences}")
            is_told = any(f"config/{file} is not up to date" in text for text in self.told)
            if in_files[file] != entries and not is_told:
                raise SilentLoss(f"{self.where}: {file} is not up to date: {_differences(entries, in_files[file])}")


def _served(root: Path) -> State:
    with Broker(broker_config(root)) as broker:
        state = broker.state
        return state_of(
            {
                "topics.json": {topic.topic_name: topic.to_json() for topic in state.topics.topics()},
                "subscriptionGroup.json": {group.group_name: group.to_json() for group in state.groups.groups()},
                "consumerOffset.json": state.offsets.table(),
                "delayOffset.json": state.schedule.offsets(),
            }
        )


def _own(state: State) -> State:
    """Without the topics and groups that each broker has, and without keys of offsets that name no topic and group."""

    def without_built_in(file: str) -> dict[Any, Any]:
        return {name: value for name, value in state[file].items() if name not in _BUILT_IN}

    offsets = {name: value for name, value in state["consumerOffset.json"].items() if str(name).count("@") == 1}
    named = {file: without_built_in(file) for file in ("topics.json", "subscriptionGroup.json")}
    return state | named | {"consumerOffset.json": offsets}


def _check_refusal(where: str, text: str, root: Path) -> None:
    if not any(name in text for name in ("metadata.db", *_FILES)) or str(root) not in text:
        raise SilentLoss(f"{where}: expected an error that names the file, got {text!r}")


def _differences(first: dict[Any, Any], second: dict[Any, Any]) -> set[Any]:
    return {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)}


def _readable(root: Path, table: type[Any]) -> Iterator[Any]:
    """The entries of a file and its backup, read without checksums."""
    for name in (table.FILE_NAME, f"{table.FILE_NAME}.bak"):
        path = root / "config" / name
        try:
            entries = table.of_members(parsed(path.read_bytes())).to_json()[table.MEMBER]
        except (OSError, ValueError, TypeError, AttributeError, RmqError):
            continue
        empty: State = {file: {} for file in _FILES}
        yield _own(empty | state_of({table.FILE_NAME: entries}))[table.FILE_NAME]
