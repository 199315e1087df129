"""`rmqfast store export`: a part of a store as a store of its own, or as JSON lines."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rmqfast.cells import size_text
from rmqfast.cli.damage import end_with_damage
from rmqfast.cli.output import say
from rmqfast.cli.progress import bar
from rmqfast.cli.shared_options import PATH, Directory, EndTime, LogDirectories, StartTime, Tags, TopicsOption
from rmqfast.cli.streams import data_output
from rmqfast.errors import ArgumentError
from rmqfast.store import ExportReport, open_store

STANDARD_OUTPUT = Path("-")


class Target(StrEnum):
    """The values of `--to`."""

    STORE = "store"
    JSONL = "jsonl"


def export(
    directory: Directory,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new path; - is standard output.", parser=PATH)],
    *,
    to: Annotated[Target | None, typer.Option(help="Default by name: jsonl for *.jsonl, *.ndjson and -.")] = None,
    topic: TopicsOption = None,
    tags: Tags = "*",
    sql: Annotated[str | None, typer.Option(help='SQL92 condition over the properties, as "a > 3".')] = None,
    keys: Annotated[list[str] | None, typer.Option(help="Only messages with this key; repeatable.")] = None,
    queue: Annotated[list[int] | None, typer.Option(help="Only this queue; repeatable.")] = None,
    start_offset: Annotated[int | None, typer.Option(help="First queue offset.")] = None,
    end_offset: Annotated[int | None, typer.Option(help="Queue offset behind the last one.")] = None,
    start_time: StartTime = None,
    end_time: EndTime = None,
    commit_log_dir: LogDirectories = None,
) -> None:
    """Writes messages to a new store for RocketMQ, with their queue offsets, or to JSON lines.

    OUT appears only once it is complete. Exit code 1: damage was skipped; standard error says where.
    """
    is_printed = out == STANDARD_OUTPUT
    if is_printed and to is Target.STORE:
        raise ArgumentError("export: expected a path for a store, got -")
    topics = None if topic is None else topic[0] if len(topic) == 1 else topic
    with open_store(directory, commit_log_dirs=commit_log_dir or ()) as store, bar("exporting") as progress:
        report = store.export(
            data_output() if is_printed else out,
            topics,
            queue_ids=queue,
            tags=tags,
            sql=sql,
            keys=keys,
            start_offset=start_offset,
            end_offset=end_offset,
            start_time=start_time,
            end_time=end_time,
            format=None if to is None else to.value,
            progress=progress,
        )
    say(summary(report))
    end_with_damage(report.damage)


def summary(report: ExportReport) -> str:
    """Formats the result as one line."""
    files = "1 file" if report.files == 1 else f"{report.files:,} files"
    text = f"{report.rows:,} messages, {size_text(report.bytes)}, {files}"
    if report.unlisted:
        text += f"; {report.unlisted:,} of them in no queue, as in the store that they are from"
    return f"{text}: {report.path or 'standard output'}"
