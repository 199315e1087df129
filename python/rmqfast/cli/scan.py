"""`rmqfast scan`: prints messages of a cluster; and the options that it shares with `rmqfast store scan`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from rmqfast.cli.bodies import (
    BodyFraming,
    DecodeOption,
    FramingOption,
    OnError,
    OnErrorOption,
    SchemaIdOption,
    SchemaOption,
    decode_arguments,
)
from rmqfast.cli.cluster_access import Access, reaches_cluster
from rmqfast.cli.completion import complete_topic
from rmqfast.cli.damage import end_with_bad_bodies, end_with_losses
from rmqfast.cli.output import Form, chosen_columns, print_json, shown_names, with_value, write
from rmqfast.cli.shared_options import (
    PATH,
    AsOf,
    Columns,
    EndOffset,
    EndTime,
    KeysOption,
    Output,
    QueueOption,
    SqlOption,
    StartOffset,
    StartTime,
    Tags,
)
from rmqfast.cluster import open_cluster
from rmqfast.errors import ArgumentError
from rmqfast.store import Scan
from rmqfast.store.json_lines import plain_rows


class ViaOption(StrEnum):
    """The values of `--via`."""

    PULL = "pull"
    LOG = "log"
    AUTO = "auto"
    MIRROR = "mirror"


@dataclass(frozen=True, kw_only=True)
class ScanOptions:
    """Options of commands that print the messages of a scan."""

    tags: Tags = "*"
    sql: SqlOption = None
    keys: KeysOption = None
    queue: QueueOption = None
    start_offset: StartOffset = None
    end_offset: EndOffset = None
    start_time: StartTime = None
    end_time: EndTime = None
    as_of: AsOf = None
    columns: Columns = None
    decode: DecodeOption = None
    schema: SchemaOption = None
    framing: FramingOption = BodyFraming.NONE
    schema_id: SchemaIdOption = None
    on_error: OnErrorOption = OnError.NULL
    limit: Annotated[int | None, typer.Option(min=0, help="Limit of rows.")] = None
    threads: Annotated[int, typer.Option(min=1, help="Threads; with more than one, rows are unordered.")] = 1
    verify_crc: Annotated[bool, typer.Option(help="Verify the CRC of each body.")] = False
    explain: Annotated[bool, typer.Option("--explain", help="Only tell what will be read; -o table or json.")] = False
    output: Output = Form.TABLE

    def print(self, scan_of: Callable[..., Scan], *, with_broker: bool = False) -> Scan:
        """Prints the messages of the scan that a call with these options makes, or its explanation; returns it.

        `with_broker` adds the broker's name to the columns that a table shows by default.
        """
        if self.explain and self.output not in {Form.TABLE, Form.JSON}:
            raise ArgumentError(f"--explain: expected -o table or json, got {self.output.value}")
        names = chosen_columns(self.columns, self.output)
        if self.decode is not None and self.columns is None:
            names = with_value(names)
        if with_broker and self.columns is None and "broker_name" not in names:
            names = ("broker_name", *names)
        scan = scan_of(
            tags=self.tags,
            sql=self.sql,
            keys=self.keys,
            queue_ids=self.queue,
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            start_time=self.start_time,
            end_time=self.end_time,
            as_of=self.as_of,
            columns=names,
            threads=self.threads,
            verify_crc=self.verify_crc,
            **decode_arguments(self.decode, self.schema, self.framing, self.schema_id, self.on_error),
        )
        scan = scan if self.limit is None else scan.limit(self.limit)
        if self.explain:
            explanation = scan.explain()
            print_json(explanation.to_dict()) if self.output is Form.JSON else print(explanation)
            return scan
        shown = names if self.decode is None else shown_names(names)
        write(self.output, shown, plain_rows(scan), whole=self.columns is not None)
        return scan


def takes_scan_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of `ScanOptions` to a command, which gets their values as its argument `options`."""
    # Typer needs annotations as objects, but `from __future__ import annotations` leaves strings.
    own = inspect.signature(command, eval_str=True)
    hints = get_type_hints(ScanOptions, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(each.name, kind, default=each.default, annotation=hints[each.name])
        for each in fields(ScanOptions)
        if each.default is not MISSING
    ]
    parameters = [parameter for parameter in own.parameters.values() if parameter.name != "options"]

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        options = ScanOptions(**{parameter.name: arguments.pop(parameter.name) for parameter in shared})
        command(**arguments, options=options)

    # `wraps` copied the signature of the command, which lacks these options.
    run.__signature__ = own.replace(parameters=[*parameters, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*parameters, *shared)}
    return run


@reaches_cluster
@takes_scan_options
def scan(
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC", help="The topics. Default: all of users.", autocompletion=complete_topic),
    ] = None,
    *,
    via: Annotated[
        ViaOption, typer.Option(help="Pull, or read the brokers' logs, or the copies of --mirror-path.")
    ] = ViaOption.PULL,
    mirror_path: Annotated[
        Path | None, typer.Option(help="The directory of rmqfast mirror, with --via mirror.", parser=PATH)
    ] = None,
    options: ScanOptions,
    access: Access,
) -> None:
    """Prints messages of a cluster, and commits no offset. Ends at what the topics have now.

    Exit code 1: messages were lost meanwhile, or a body is damaged or cannot be decoded; standard error says where.
    """
    cluster = open_cluster(config=access.config())
    ways: Any = {"via": via.value, "mirror_path": mirror_path}
    messages = options.print(functools.partial(cluster.scan, topics or None, on_damage="warn", **ways))
    end_with_bad_bodies(messages)
    end_with_losses(messages.losses)
