"""The broker's `config/` harmed: `metadata.db` with its log, and RocketMQ's files beside it.

A broker that starts on it has the topics, groups and offsets that were true last. Or, told by a warning that names the
file, what an older time had, or what a person who reads the harmed file finds there. Or it does not start, by an error
that names the file. A check of the store tells of a database that a start would not take.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import rmqfast
from rmqfast.broker import Broker
from rmqfast.broker.topics.topic_manager import broker_topics
from rmqfast.errors import RmqError
from rmqfast.store.config.groups import built_in_groups
from tests.embedded.client import broker_config

from .attempt import Attempt, SilentLoss
from .metadata_brokers import TABLES, LeftBehind, State, left_behind, loaded, parsed, state_of
from .metadata_harms import OLDER, harm
from .told import warnings_told

__all__ = ["MetadataSubject"]

#: One of so many attempts starts a broker; the others use the class by which it keeps what it knows.
_BROKERS = 10
#: One of so many has the store checked before.
_CHECKS = 3
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
        """Removes the stores."""
        shutil.rmtree(self._directory)

    def attempt(self, chance: random.Random, directory: Path) -> Attempt:
        """Harms one, and starts on it."""
        left = chance.choice(self._sources)
        root = directory / "store"
        shutil.copytree(left.root, root)
        harms = [harm(left, root, chance) for _ in range(chance.choice((1, 1, 2, 3)))]
        start = _served if chance.randrange(_BROKERS) == 0 else loaded
        where = f"{left.root.parent.name}, {start.__name__.strip('_')}: {'; '.join(harms)}"
        checked = _checked(where, root) if chance.randrange(_CHECKS) == 0 else None
        readable = {table.FILE_NAME: list(_readable(root, table)) for table in TABLES}
        with warnings_told() as told:
            try:
                state = _own(start(root))
            except RmqError as error:
                _check_refusal(where, str(error), root)
                return Attempt(where, rows=0, missing=0, refused=True)
            except Exception as error:
                raise SilentLoss(f"{where}: expected an error of rmqfast, got {error!r}") from error
        if checked is not None:
            _check_report(where, checked, told)
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


def _checked(where: str, root: Path) -> list[str] | None:
    """The report of a read-only check of the store; None if it is refused."""
    before = _contents(root)
    try:
        with rmqfast.open_store(root) as store:
            report = store.verify()
    except RmqError as error:
        _check_refusal(where, str(error), root)
        return None
    finally:
        if _contents(root) != before:
            raise SilentLoss(f"{where}: a check changed the store")
    return [f"{entry.file}: {entry.reason}" for entry in report.damage]


def _contents(root: Path) -> dict[str, bytes]:
    return {path.name: sha256(path.read_bytes()).digest() for path in (root / "config").iterdir() if path.is_file()}


def _check_report(where: str, checked: Sequence[str], told: Sequence[str]) -> None:
    """Damage that a start reports is also damage for a check."""
    kinds = ("RocketMQ's files beside it are read instead", "changes, and had", "nothing tells whether")
    if any(kind in text for text in told for kind in kinds) and not any("metadata.db" in text for text in checked):
        raise SilentLoss(f"{where}: expected damage of metadata.db from a check, got {checked}; the start said {told}")


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
