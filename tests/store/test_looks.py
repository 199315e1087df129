"""What can be listed and not looked at is never taken for absent: no right to enter, links that lead nowhere."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import Result

from rmqfast import AppendOptions, DamageWarning, Message, open_store
from rmqfast.errors import CorruptError, StoreIOError
from rmqfast.store import MessageStore
from rmqfast.store.config import TopicConfigTable
from rmqfast.tables import ingest
from tests.cli.command_line import run

TINY = AppendOptions(file_size=4096, queue_file_size=400, index_slots=10, index_entries=40, file_permission=0o644)
DIRECTORIES = ("commitlog", "consumequeue", "consumequeue/orders", "consumequeue/orders/0", "index", "config")
COUNT = 60
ARCHIVE = "/nowhere/archive"
DAC_OVERRIDE, DAC_READ_SEARCH = 1 << 1, 1 << 2
CAPABILITIES_3 = 0x20080522


@contextmanager
def without_override() -> Iterator[None]:
    """Root as any other user: modes of files and directories hold for this thread, and for those that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = (ctypes.c_uint32 * 2)(CAPABILITIES_3, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    after = (ctypes.c_uint32 * 6)(*before)
    after[0] &= ~(DAC_OVERRIDE | DAC_READ_SEARCH)
    assert libc.capset(header, after) == 0
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0


def run_as_any_user(*words: str | Path) -> Result:
    with without_override():
        return run(*words)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "store"
    with open_store(root, mode="a", options=TINY) as store:
        for number in range(COUNT):
            store.append(Message(("orders", "clicks")[number % 2], b"x" * 100, keys=f"k{number}"))
        TopicConfigTable().save(root)
    yield root
    for path in [root, *(root / name for name in DIRECTORIES)]:
        path.chmod(0o755)


def leads_nowhere(path: Path) -> Path:
    path.unlink()
    path.symlink_to(f"{ARCHIVE}/{path.name}")
    return path


def files(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


@pytest.mark.parametrize("mode", [0o644, 0o000])
@pytest.mark.parametrize("name", DIRECTORIES[:4])
def test_a_directory_that_may_not_be_entered_is_an_error_and_not_empty(root: Path, name: str, mode: int) -> None:
    asked: list[Callable[[MessageStore], object]] = [
        lambda store: store.scan("orders").to_arrow(),
        lambda store: store.topics(),
        lambda store: store.info(),
        lambda store: store.verify(),
        lambda store: store.get("orders", 0, 0),
        lambda store: ingest(store, root.parent / "out", ["orders"]),
        lambda store: store.export(root.parent / "out", "orders"),
    ]
    for ask in asked:
        with without_override(), open_store(root) as store:
            ask(store)
        shutil.rmtree(root.parent / "out", ignore_errors=True)
    (root / name).chmod(mode)
    for ask in asked:
        with (
            without_override(),
            pytest.raises(StoreIOError, match="permission denied") as raised,
            open_store(root) as store,
        ):
            ask(store)
        assert str(raised.value.filename).startswith(str(root / name))
    assert not (root.parent / "out").exists()


def test_commands_end_where_a_directory_may_not_be_entered(root: Path) -> None:
    (root / "commitlog").chmod(0o644)
    commands: list[list[str | Path]] = [
        ["store", "scan", root],
        ["store", "tail", root],
        ["store", "repair", root, "--yes"],
        ["store", "clean", root, "--reserved-hours", "0"],
        ["ingest", root, "--out", root.parent / "out", "--engine", "local"],
    ]
    for words in commands:
        done = run_as_any_user(*words)
        assert (done.exit_code, str(root / "commitlog") in done.stderr) == (3, True), (words, done.output)
        assert "permission denied" in done.stderr, (words, done.output)
    assert not (root.parent / "out").exists()


@pytest.mark.parametrize("mode", [0o644, 0o000])
def test_an_index_that_may_not_be_entered_is_an_error_of_what_asks_it(root: Path, mode: int) -> None:
    (root / "index").chmod(mode)
    asked: list[Callable[[MessageStore], object]] = [
        lambda store: store.query("orders", "k2"),
        lambda store: store.verify(),
        lambda store: store.info(),
    ]
    with without_override(), open_store(root) as store:
        for ask in asked:
            with pytest.raises(StoreIOError, match="permission denied"):
                ask(store)
        # no reader of messages needs it
        assert store.scan("orders").to_arrow().num_rows == COUNT // 2


def test_a_configuration_that_may_not_be_read_is_told(root: Path) -> None:
    (root / "config").chmod(0)
    done = run_as_any_user("store", "verify", root)
    assert (done.exit_code, "permission denied" in done.stderr) == (3, True), done.output
    assert "permission denied" in run_as_any_user("store", "info", root).output.lower()
    with without_override(), pytest.raises(CorruptError, match=r"(?i)permission denied"):
        TopicConfigTable.load(root)


@pytest.mark.parametrize("number", [0, 2, -1])
def test_a_log_file_whose_target_is_not_there_is_damage(root: Path, number: int) -> None:
    with open_store(root) as store:
        sound = store.scan(columns=["queue_offset"]).to_arrow().num_rows
    link = leads_nowhere(files(root / "commitlog")[number])
    with open_store(root) as store:
        scan = store.scan(columns=["queue_offset"])
        with pytest.warns(DamageWarning, match=ARCHIVE):
            assert 0 < scan.to_arrow().num_rows < sound
        damage = next(each for each in scan.damage if each.file == str(link))
        assert (damage.length, ARCHIVE in damage.reason) == (4096, True)
        assert not store.verify().ok
        with pytest.raises(CorruptError, match=ARCHIVE):
            ingest(store, root.parent / "out", on_damage="fail")
    verified = run("store", "verify", root)
    assert (verified.exit_code, ARCHIVE in verified.stdout) == (1, True)


def test_a_file_that_retention_removes_meanwhile_is_gone_and_leads_nowhere_no_more(root: Path) -> None:
    with open_store(root) as store:
        files(root / "commitlog")[0].unlink()
        scan = store.scan("orders")
        with pytest.warns(DamageWarning, match="retention removed the file"):
            assert scan.to_arrow().num_rows < COUNT // 2
    with open_store(root) as store:
        assert store.verify().ok
