"""`rmqfast store tail`: the last messages of a store and, with -f, new ones."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from rmqfast.cli.damage import end_with_damage
from rmqfast.cli.output import Form, Row, chosen_columns, say, write
from rmqfast.cli.shared_options import (
    Directory,
    LogDirectories,
    OnDamage,
    OnDamageOption,
    Output,
    Tags,
    TopicOption,
)
from rmqfast.errors import ArgumentError, DamageWarning
from rmqfast.store import Tail, open_store
from rmqfast.store.json_lines import batch_rows


def tail(
    directory: Directory,
    *,
    topic: TopicOption = None,
    tags: Tags = "*",
    sql: Annotated[str | None, typer.Option(help='SQL92 condition over the properties, as "a > 3".')] = None,
    keys: Annotated[list[str] | None, typer.Option(help="Only messages with this key; repeatable.")] = None,
    queue: Annotated[list[int] | None, typer.Option(help="Only this queue; repeatable.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns, as topic,tags,body; a table shows a few.")] = None,
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
