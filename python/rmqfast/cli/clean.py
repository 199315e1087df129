"""`rmqfast store clean`: old files go, oldest first."""

from __future__ import annotations

from typing import Annotated

import typer

from rmqfast.cli.options import Directory, Output
from rmqfast.cli.output import Form, say, write, write_facts
from rmqfast.store import CleanedFile, CleanReport, RetentionOptions, WritableStore, open_store, plan_clean

__all__ = ["clean"]


def clean(
    directory: Directory,
    *,
    reserved_hours: Annotated[int, typer.Option(min=0, help="Files last written longer ago than this go.")] = 72,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, nothing is changed.")] = False,
    output: Output = Form.TABLE,
) -> None:
    """Removes old files of the commit log, oldest first, and what lists only those. Shows them before.

    With --yes nobody else may own the store. Exit code 1: without --yes, there are files to remove.
    """
    keep = RetentionOptions(file_reserved_hours=reserved_hours, clean_forcibly=False, warning_ratio=100)
    open_store(directory).close()  # a new store is made nowhere
    if not yes:
        files, min_offset = plan_clean(directory, keep)
        write(output, CleanedFile._fields, [files])
        size = sum(file.bytes for file in files)
        say(f"{len(files):,} files, {size:,} bytes; the log would begin at {min_offset}")
        say("nothing was changed: `rmqfast store clean DIR --yes` removes them")
        raise typer.Exit(1 if files else 0)
    with open_store(directory, mode="a", retention=keep) as store:
        write_facts(output, cleaned(store)._asdict())


def cleaned(store: WritableStore) -> CleanReport:
    """Lets retention run until nothing more goes, and adds up what it did."""
    files = queues = index = size = 0
    while True:
        run = store.clean(manual=True)
        files, queues, index = files + run.log_files, queues + run.queue_files, index + run.index_files
        size += run.bytes
        if not run.log_files:
            return run._replace(log_files=files, queue_files=queues, index_files=index, bytes=size)
