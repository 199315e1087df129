"""The options that decode bodies into the column `value`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from rmqfast.errors import StoreIOError
from rmqfast.paths import is_file


class BodyFormat(StrEnum):
    """The values of `--decode`."""

    JSON = "json"
    AVRO = "avro"


class BodyFraming(StrEnum):
    """The values of `--framing`."""

    NONE = "none"
    CONFLUENT = "confluent"
    SINGLE_OBJECT = "single-object"


class OnError(StrEnum):
    """The values of `--on-error`."""

    NULL = "null"
    FAIL = "fail"


DecodeOption = Annotated[BodyFormat | None, typer.Option(help="Decode bodies into the column value; with --schema.")]
SchemaOption = Annotated[str | None, typer.Option(help="DDL as 'id bigint, name string', or a file with it or .avsc.")]
FramingOption = Annotated[BodyFraming, typer.Option(help="Prefix of the bodies.")]
SchemaIdOption = Annotated[int | None, typer.Option(help="The schema's id, with --framing confluent.")]
OnErrorOption = Annotated[OnError, typer.Option(help="Action on bodies that cannot be decoded.")]


def decode_arguments(
    decode: BodyFormat | None, schema: str | None, framing: BodyFraming, schema_id: int | None, on_error: OnError
) -> dict[str, Any]:
    """Returns the arguments of scans for the values of the options."""
    return {
        "decode": None if decode is None else decode.value,
        "schema": _schema(schema),
        "framing": framing.value,
        "schema_id": schema_id,
        "on_error": on_error.value,
    }


def _schema(given: str | None) -> str | Path | None:
    """Returns the path if a file has the name, or the text."""
    try:
        return Path(given) if given is not None and is_file(given) else given
    except StoreIOError:
        # too long for the name of a file
        return given
