"""Creates a directory atomically: writes it beside its target, and renames it at the end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal

from rmqfast.errors import ArgumentError, StoreBusyError, StoreError, StoreIOError
from rmqfast.paths import exists, is_directory
from rmqfast.system import owned_directory, sync_directory

Mode = Literal["error", "append", "overwrite"]
NEW, OLD = "new", "old"


@contextmanager
def new_directory(out: Path, mode: Mode) -> Iterator[Path]:
    """Yields a directory. It is moved to `out` when the block ends without an error.

    It is written as `out` + ".partial", which an error removes; the next call removes that of a killed process. A
    directory that is overwritten is kept inside until the new one is in place, and restored after an error.
    """
    if not out.name:
        raise ArgumentError(f"out: expected a path that ends in a name, got {out}")
    # replaces the target of a link, not the link
    out = out.resolve()
    partial = out.with_name(f"{out.name}.partial")
    try:
        with _parents(out), _own(partial):
            try:
                # a killed overwrite may have left the old directory here
                _put_back(partial / OLD, out)
                _check(out, mode)
                for part in (NEW, OLD):
                    shutil.rmtree(partial / part, ignore_errors=True)
                (partial / NEW).mkdir()
                yield partial / NEW
                _place(partial / NEW, out, partial / OLD, mode)
            finally:
                _put_back(partial / OLD, out)
                shutil.rmtree(partial)
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        text = os.strerror(error.errno).lower() if error.errno else str(error)
        raise StoreIOError(error.errno, text, str(error.filename or out)) from None


@contextmanager
def _parents(out: Path) -> Iterator[None]:
    """Creates parent directories that are missing. After an error, removes them again."""
    new_parents = [parent for parent in out.parents if not exists(parent)]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for parent in new_parents:
            with suppress(OSError):
                # fails if another process has put files there
                parent.rmdir()
        raise


@contextmanager
def _own(partial: Path) -> Iterator[None]:
    """Creates the directory and locks it for the block. Takes over the directory of a process that was killed."""
    partial.mkdir(exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(owned_directory(partial))
        except (BlockingIOError, FileNotFoundError):
            error = StoreBusyError(f"{partial}: another process writes to it")
            error.add_note("wait until it has ended, or write elsewhere")
            raise error from None
        # a user's directory of that name must not be deleted
        if not {entry.name for entry in partial.iterdir()} <= {NEW, OLD}:
            raise ArgumentError(f"out: expected a path beside which OUT.partial is free, got {partial}")
        yield


def _check(out: Path, mode: Mode) -> None:
    if mode == "error" and exists(out):
        raise ArgumentError(f"out: expected a path where nothing is yet, got {out}; or mode append or overwrite")
    if mode == "append" and exists(out) and not is_directory(out):
        raise ArgumentError(f"out: expected a directory to append to, got the file {out}")


def _place(new: Path, out: Path, old: Path, mode: Mode) -> None:
    if mode == "append" and exists(out):
        _add(new, out)
    else:
        if mode == "overwrite" and exists(out):
            # two renames: a directory cannot replace another one atomically
            out.rename(old)
        new.rename(out)
    # flushes the new directory entry
    sync_directory(out.parent)


def _put_back(old: Path, out: Path) -> None:
    if exists(old) and not exists(out):
        old.rename(out)


def _add(new: Path, out: Path) -> None:
    """Moves files into `out`, either all or none. Existing files stay."""
    with ExitStack() as undo:
        # sorted, so that a directory comes before its files
        for path in sorted(new.rglob("*")):
            target = out / path.relative_to(new)
            if exists(target):
                continue
            if path.is_dir():
                undo.callback(_remove_empty, target)
                target.mkdir()
            else:
                undo.callback(target.unlink, missing_ok=True)
                path.rename(target)
        # keeps the new files, because all were moved
        undo.pop_all()


def _remove_empty(directory: Path) -> None:
    with suppress(OSError):
        directory.rmdir()
