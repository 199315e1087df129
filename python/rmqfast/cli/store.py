"""`rmqfast store`: inspects a store directory. Most commands only read, so that a broker may run on it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from rmqfast.cells import size_text
from rmqfast.cli.completion import complete_topic
from rmqfast.cli.damage import damage_reported, end_with_bad_bodies, end_with_damage, write_report
from rmqfast.cli.output import (
    Form,
    Row,
    bar,
    chosen_columns,
    print_json,
    say,
    say_directory,
    write,
    write_facts,
    write_messages,
)
from rmqfast.cli.scan import ScanOptions, takes_scan_options
from rmqfast.cli.shared_options import (
    PATH,
    Columns,
    Directory,
    EndOffset,
    EndTime,
    KeysOption,
    LogDirectories,
    OnDamage,
    OnDamageOption,
    Output,
    QueueOption,
    SqlOption,
    StartOffset,
    StartTime,
    Tags,
    TopicOption,
    TopicsOption,
)
from rmqfast.cli.streams import data_output
from rmqfast.cli.watch import watchable
from rmqfast.errors import ArgumentError, DamageWarning
from rmqfast.message import MessageExt
from rmqfast.store import (
    CleanedFile,
    CleanReport,
    Difference,
    ExportReport,
    MessageStore,
    MessageStores,
    RetentionOptions,
    Tail,
    WritableStore,
    diff_stores,
    find_missing_end,
    open_store,
    plan_clean,
)
from rmqfast.store import repair as repair_store
from rmqfast.store.json_lines import batch_rows
from rmqfast.store.message_stores import open_one_or_several

TOPIC_COLUMNS = (
    "topic",
    "queues",
    "messages",
    "min_offset",
    "max_offset",
    "first_store_timestamp",
    "last_store_timestamp",
)

Queues = dict[int, tuple[int, int]]


def store_facts(store: MessageStore) -> dict[str, object]:
    """Returns `MessageStore.info` as one record: the number of index files, and the checkpoint as three times."""
    facts = asdict(store.info())
    log, queues, index = facts.pop("checkpoint") or (None, None, None)
    facts["known_topics"] = facts.pop("topics")
    facts["index_files"] = len(facts["index_files"])
    flushed = {"log_flushed_timestamp": log, "queues_flushed_timestamp": queues, "index_flushed_timestamp": index}
    notes = facts.pop("notes")
    return facts | flushed | {"notes": notes}


def topic_rows(store: MessageStore) -> list[Row]:
    """Returns one row per topic, with the lowest and the highest offset of its queues."""
    return [_topic_row(store, topic, queues) for topic, queues in sorted(store.topics().items())]


def _topic_row(store: MessageStore, topic: str, queues: Queues) -> Row:
    filled = {queue_id: (low, high) for queue_id, (low, high) in queues.items() if high > low}
    firsts = _times(store, topic, ((queue_id, low) for queue_id, (low, _) in filled.items()))
    lasts = _times(store, topic, ((queue_id, high - 1) for queue_id, (_, high) in filled.items()))
    return (
        topic,
        len(queues),
        sum(high - low for low, high in queues.values()),
        min((low for low, _ in queues.values()), default=0),
        max((high for _, high in queues.values()), default=0),
        min(firsts, default=None),
        max(lasts, default=None),
    )


def _times(store: MessageStore, topic: str, places: Iterable[tuple[int, int]]) -> list[int]:
    """Returns the store times of the messages at the given queue offsets. Skips messages that cannot be read."""
    answers = (store.get(topic, queue_id, offset, max_messages=1).messages for queue_id, offset in places)
    return [message.store_timestamp for messages in answers for message in messages]


def tail(
    directory: Directory,
    *,
    topic: TopicOption = None,
    tags: Tags = "*",
    sql: SqlOption = None,
    keys: KeysOption = None,
    queue: QueueOption = None,
    columns: Columns = None,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="Number of last messages to print first.")] = 10,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow new messages until Ctrl-C.")] = False,
    on_damage: OnDamageOption = OnDamage.WARN,
    commit_log_dir: LogDirectories = None,
    output: Output = Form.TABLE,
) -> None:
    """Prints the last messages in log order. -f follows a running broker until Ctrl-C, exit code 0.

    Exit code 1: damage was found; standard error says where. With -f, only --on-damage fail ends for it.
    """
    if follow and output is Form.JSON:
        raise ArgumentError("output: expected table, jsonl or csv with --follow, got json, an array that never ends")
    names = chosen_columns(columns, output)
    with (
        open_store(directory, commit_log_dirs=commit_log_dir or ()) as store,
        store.tail(
            topic,
            tags=tags,
            sql=sql,
            keys=keys,
            queue_ids=queue,
            columns=names,
            last=lines,
            stop=None if follow else "end",
            on_damage=on_damage.value,
        ) as messages,
    ):
        if not follow:
            write(output, names, tail_rows(messages), whole=columns is not None)
            end_with_damage(messages.damage)
            return
        try:
            write(output, names, tail_rows(messages), whole=columns is not None)
        except KeyboardInterrupt:
            # Ctrl-C is the normal end of following a store.
            raise typer.Exit(0) from None


def tail_rows(messages: Tail) -> Iterator[Sequence[Row]]:
    """Yields the rows of a tail. Reports bytes that cannot be read on standard error."""
    damage_count, retained_count = 0, 0
    with warnings.catch_warnings():
        # Each place is reported below.
        warnings.simplefilter("ignore", DamageWarning)
        for batch in messages:
            damage, retained = messages.damage, messages.retained
            for place in damage[damage_count:]:
                say(f"damage: {place.file} offset {place.offset}, {place.length} bytes: {place.reason}")
            for stretch in retained[retained_count:]:
                say(f"retention removed {stretch.length} bytes from offset {stretch.offset} on before they were read")
            damage_count, retained_count = len(damage), len(retained)
            yield batch_rows(batch)
            # Show each batch at once, even in a pipe.
            sys.stdout.flush()


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
    sql: SqlOption = None,
    keys: KeysOption = None,
    queue: QueueOption = None,
    start_offset: StartOffset = None,
    end_offset: EndOffset = None,
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


app: typer.Typer = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look into a store directory.")
app.command()(export)
app.command()(tail)


@app.command()
@watchable
def info(directory: Directory, *, commit_log_dir: LogDirectories = None, output: Output = Form.TABLE) -> None:
    """Describes a store and its topics. JSON has both; JSON lines and CSV have the topics."""
    with open_store(directory, commit_log_dirs=commit_log_dir or ()) as store:
        facts, topics = store_facts(store), topic_rows(store)
    if output is Form.JSON:
        print_json(facts | {"topics": [dict(zip(TOPIC_COLUMNS, row, strict=True)) for row in topics]})
        return
    if output is Form.TABLE:
        write_facts(output, facts)
        print()
    write(output, TOPIC_COLUMNS, [topics])


@app.command()
@takes_scan_options
def scan(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A store, a directory of stores, or a pattern.", parser=PATH),
    ],
    *,
    topic: TopicOption = None,
    commit_log_dir: LogDirectories = None,
    options: ScanOptions,
) -> None:
    """Prints messages in log order. Exit code 1: damage, or bodies that cannot be decoded; standard error has them."""
    with open_one_or_several(directory, commit_log_dirs=commit_log_dir or ()) as store:
        messages = options.print(partial(store.scan, topic), with_broker=isinstance(store, MessageStores))
    end_with_bad_bodies(messages)
    end_with_damage(messages.damage)


@app.command()
def diff(
    directory: Directory,
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="Another store, such as a copy.", parser=PATH)],
    *,
    topic: TopicsOption = None,
    start_time: StartTime = None,
    end_time: EndTime = None,
    output: Output = Form.TABLE,
) -> None:
    """Compares the messages of two stores by topic, queue and offset. Exit code 1: they differ, or there is damage.

    Fields that belong to a store, such as physical offsets, are not compared. So a copy or an export compares.
    """
    with open_store(directory) as a, open_store(other) as b, damage_reported() as damage:
        found = diff_stores(a, b, topic, start_time=start_time, end_time=end_time)
    counts = {"equal": found.equal, "only_a": found.only_a, "only_b": found.only_b, "changed": found.changed}
    if output is Form.JSON:
        print_json(counts | {"differences": [row._asdict() for row in found.differences], "more": found.more})
    else:
        write(output, Difference._fields, [found.differences])
        if found.more:
            say(f"{found.more:,} further ranges are not listed")
        say(", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items()))
    if damage or not found.is_equal:
        raise typer.Exit(1)


@app.command()
def get(
    directory: Directory,
    *,
    topic: Annotated[str | None, typer.Option(help="The topic.", autocompletion=complete_topic)] = None,
    queue: Annotated[int | None, typer.Option(help="The queue, with --offset.")] = None,
    offset: Annotated[int | None, typer.Option(help="Queue offset of the first message.")] = None,
    message_id: Annotated[str | None, typer.Option("--id", help="The broker's or the producer's id.")] = None,
    key: Annotated[str | None, typer.Option(help="A key, with --topic; finds the newest messages.")] = None,
    most: Annotated[int, typer.Option("--max", min=1, help="Limit of messages.")] = 1,
    tags: Annotated[str, typer.Option(help="Tag expression, as 'A || B', with --offset.")] = "*",
    commit_log_dir: LogDirectories = None,
    output: Output = Form.TABLE,
) -> None:
    """Prints messages in full: by queue and offset, by id, or by key. Exit code 1: none, or damage."""
    with open_store(directory, commit_log_dirs=commit_log_dir or ()) as store, damage_reported() as damage:
        if message_id is not None:
            messages, none = [store.message_by_id(message_id, topic=topic)], ""
        elif topic is not None and key is not None:
            messages, none = store.query(topic, key, max_messages=most), f"no message of {topic} has the key {key}"
        elif topic is not None and queue is not None and offset is not None:
            messages, none = pull_by_tags(store, (topic, queue, offset), most, tags)
        else:
            raise ArgumentError("get: expected --id, or --topic and --key, or --topic, --queue and --offset")
    if messages:
        write_messages(output, messages)
    else:
        say(none)
    if damage or not messages:
        raise typer.Exit(1)


@app.command()
def verify(
    directory: Directory,
    *,
    crc: Annotated[bool, typer.Option(help="Also verify the CRC of each body.")] = True,
    commit_log_dir: LogDirectories = None,
    output: Output = Form.TABLE,
) -> None:
    """Checks all records, queue and index entries, checkpoint and configuration; changes nothing. Exit code 1: damage.

    JSON has counts, notes and damage; JSON lines and CSV have the damage.
    """
    with open_store(directory, commit_log_dirs=commit_log_dir or ()) as store, bar("checking") as progress:
        report = store.verify(crc=crc, progress=progress)
    write_report(output, report)
    if not report.ok:
        raise typer.Exit(1)


@app.command()
def repair(
    directory: Directory,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Make the change; otherwise only show it.")] = False,
    cut_at: Annotated[int | None, typer.Option(min=0, help="Offset at which to cut a log that lost its end.")] = None,
    output: Output = Form.TABLE,
) -> None:
    """Rebuilds consume queues and index from the log, and removes half a record at its end. Shows the damage first.

    If the log ends before data that was flushed, its end is lost: nothing is cut unless you name the offset with
    --cut-at. The queues then continue behind the offsets they had, so no queue offset is used twice.

    No other process may own the store. A store of RocketMQ 5.x with default settings has a timer wheel and is not
    changed: a 5.x broker recovers it at its start, and `rmqfast store export` makes a new store of its messages. Exit
    code 1: damage, and no --yes.
    """
    if not yes:
        with open_store(directory) as store, bar("checking") as progress:
            report = store.verify(progress=progress)
        write_report(output, report)
        missing = find_missing_end(directory)
        if missing is not None:
            say(f"damage: {missing.file} offset {missing.position}: {missing.reason}")
            say(
                "nothing was changed: bring the file back, or give up what stood behind, leave its queue offsets out: "
                f"`rmqfast store repair {directory} --cut-at {missing.log_end} --yes`"
            )
            raise typer.Exit(1)
        say("nothing was changed: `rmqfast store repair DIR --yes` mends the queues and builds the index from the log")
        raise typer.Exit(0 if report.ok else 1)
    say_directory("store", directory)
    with bar("repairing") as progress:
        recovery = repair_store(directory, cut_at=cut_at, progress=progress)
    write_facts(output, recovery._asdict())
    if recovery.left_out:
        say(
            f"{recovery.left_out:,} queue offsets are left out: {directory / 'config' / 'lostMessages.json'} lists them"
        )


def pull_by_tags(
    store: MessageStore, place: tuple[str, int, int], most: int, tags: str
) -> tuple[list[MessageExt], str]:
    """Returns the messages with which a broker would answer a pull, and a text for an empty answer."""
    result = store.get(*place, max_messages=most, tags=tags)
    for entry in result.damage:
        text = f"{entry.file} offset {entry.offset}, {entry.length} bytes: {entry.reason}"
        warnings.warn(text, DamageWarning, stacklevel=2)
    queue = f"the queue has {result.min_offset} to {result.max_offset}, read on at {result.next_begin_offset}"
    return result.messages, f"{result.status.value}: {queue}"


@app.command()
def clean(
    directory: Directory,
    *,
    reserved_hours: Annotated[int, typer.Option(min=0, help="Remove files last written longer ago than this.")] = 72,
    yes: Annotated[bool, typer.Option("--yes", help="Make the change; otherwise only show it.")] = False,
    output: Output = Form.TABLE,
) -> None:
    """Removes old files of the commit log, oldest first, and queue and index files only for them. Shows them first.

    With --yes no other process may own the store. Exit code 1: there are files to remove, and no --yes.
    """
    # By age only, regardless of the disk's usage.
    keep = RetentionOptions(file_reserved_hours=reserved_hours, clean_forcibly=False, warning_ratio=100)
    open_store(directory).close()  # fails for a missing store instead of creating one
    if not yes:
        files, min_offset = plan_clean(directory, keep)
        write(output, CleanedFile._fields, [files])
        size = sum(file.bytes for file in files)
        say(f"{len(files):,} files, {size:,} bytes; the log would begin at {min_offset}")
        say("nothing was changed: `rmqfast store clean DIR --yes` removes them")
        raise typer.Exit(1 if files else 0)
    say_directory("store", directory)
    with open_store(directory, mode="a", retention=keep) as store:
        write_facts(output, clean_all(store)._asdict())


def clean_all(store: WritableStore) -> CleanReport:
    """Runs retention until it removes nothing more. Returns the sum of its reports."""
    files = queues = index = size = 0
    while True:
        # One call may leave expired files behind.
        run = store.clean(manual=True)
        files, queues, index = files + run.log_files, queues + run.queue_files, index + run.index_files
        size += run.bytes
        if not run.log_files:
            return run._replace(log_files=files, queue_files=queues, index_files=index, bytes=size)
