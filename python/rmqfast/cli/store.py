"""`rmqfast store`: look into a store directory. It is opened for reading only, so a broker may be running on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rmqfast.cli.options import Directory, EndTime, LogDirectories, Output, StartTime, Tags
from rmqfast.cli.output import Form, say, write
from rmqfast.cli.rows import scan_rows
from rmqfast.store import COLUMNS, open_store

if TYPE_CHECKING:
    from rmqfast.message import Damage

__all__ = ["app"]

TABLE_COLUMNS = ("topic", "queue_id", "queue_offset", "store_timestamp", "tags", "keys", "body")
SHOWN_DAMAGE = 5

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look into a store directory.")


@app.command()
def scan(
    directory: Directory,
    *,
    topic: Annotated[str | None, typer.Option(help="Only this topic; all without it.")] = None,
    tags: Tags = "*",
    sql: Annotated[str | None, typer.Option(help='SQL92 condition over the properties, as "a > 3".')] = None,
    keys: Annotated[list[str] | None, typer.Option(help="Only messages with this key; repeatable.")] = None,
    queue: Annotated[list[int] | None, typer.Option(help="Only this queue; repeatable.")] = None,
    start_offset: Annotated[int | None, typer.Option(help="Queue offsets from here on.")] = None,
    end_offset: Annotated[int | None, typer.Option(help="Queue offsets before this.")] = None,
    start_time: StartTime = None,
    end_time: EndTime = None,
    columns: Annotated[str | None, typer.Option(help="Columns, as topic,tags,body; a table shows a few.")] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Rows at most.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="More than one: rows come in no order.")] = 1,
    verify_crc: Annotated[bool, typer.Option(help="Check every body.")] = False,
    commit_log_dir: LogDirectories = None,
    output: Output = Form.TABLE,
) -> None:
    """Prints messages, oldest first. Exit code 1: there was damage, and standard error says where."""
    names = chosen_columns(columns, output)
    with open_store(directory, commit_log_dirs=commit_log_dir or ()) as opened:
        found = opened.scan(
            topic,
            tags=tags,
            sql=sql,
            keys=keys,
            queue_ids=queue,
            start_offset=start_offset,
            end_offset=end_offset,
            start_time=start_time,
            end_time=end_time,
            columns=names,
            threads=threads,
            verify_crc=verify_crc,
        )
        write(output, names, scan_rows(found, limit))
    end_with_damage(found.damage)


def chosen_columns(asked: str | None, form: Form) -> Sequence[str]:
    """The columns to read: those that were asked for, else what fits a table or all."""
    if asked is not None:
        return [name.strip() for name in asked.split(",")]
    return TABLE_COLUMNS if form is Form.TABLE else COLUMNS


def end_with_damage(damage: Sequence[Damage]) -> None:
    """Lists damage on standard error; exit code 1 where there is any."""
    if not damage:
        return
    places = "1 place" if len(damage) == 1 else f"{len(damage):,} places"
    say(f"damage in {places}, {sum(d.length for d in damage):,} bytes not read")
    for place in damage[:SHOWN_DAMAGE]:
        say(f"  {place.file} offset {place.offset}, {place.length} bytes: {place.reason}")
    if len(damage) > SHOWN_DAMAGE:
        say(f"  and {len(damage) - SHOWN_DAMAGE:,} more; `rmqfast store verify DIR` lists all")
    raise typer.Exit(1)
