"""Bodies as columns: the arguments that decode bodies, bad bodies, and the inference of schemas."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, Protocol

from rmqfast import _native
from rmqfast.arguments import Number, integer
from rmqfast.errors import ArgumentError, ArgumentTypeError, DecodeWarning, StoreIOError
from rmqfast.message import BadBody
from rmqfast.paths import local_path
from rmqfast.store.damage_warning import CallerLine

Decode = Literal["json", "avro"]
Framing = Literal["none", "confluent", "single-object"]
OnError = Literal["null", "list", "fail"]

#: The decoded column, and the prefix of names that choose its fields.
VALUE = "value"
_SAMPLE_BYTES = 16 << 20
_MAX_SCHEMA_BYTES = 1 << 20
#: Default values of the arguments that only count with `decode`.
_DEFAULTS = {"schema": None, "framing": "none", "on_error": "null", "schema_id": None}


class ArrowSchema(Protocol):
    """An Arrow schema of any library, or a struct type."""

    def __arrow_c_schema__(self) -> object: ...


#: DDL, Avro's JSON, a path to a file with one of them, or an Arrow schema.
Schema = str | os.PathLike[str] | ArrowSchema


def is_decoded(column: str) -> bool:
    """Whether a column is `value`, or a field of it."""
    return column == VALUE or column.startswith(f"{VALUE}.")


def check_decode(
    decode: Decode | None, *, schema: Schema | None, framing: Framing, on_error: OnError, schema_id: Number | None
) -> tuple[str | ArrowSchema | None, int | None]:
    """Checks the arguments that decode bodies. Returns the schema, in place of a path what its file has, and its id."""
    if decode is None:
        given = {"schema": schema, "framing": framing, "on_error": on_error, "schema_id": schema_id}
        for name, value in given.items():
            if value != _DEFAULTS[name]:
                raise ArgumentError(f"{name}: expected decode= with it, got none: write decode='json'")
        return None, None
    number = None if schema_id is None else integer("schema_id", schema_id, 0, (1 << 32) - 1)
    return _schema(decode, schema), number


def _schema(decode: str, given: Any) -> str | ArrowSchema:
    if isinstance(given, str):
        # no schema of Avro that a body can have begins otherwise
        is_text = decode != "avro" or given.lstrip()[:1] in "{["
        return given if is_text else _read_schema(given)
    if isinstance(given, os.PathLike):
        return _read_schema(given)
    if hasattr(given, "__arrow_c_schema__"):
        schema: ArrowSchema = given
        return schema
    got = "none" if given is None else f"{given!r} ({type(given).__name__})"
    raise ArgumentTypeError(
        f"schema: expected DDL as 'id bigint, name string', an Arrow schema, or an .avsc for Avro, got {got}"
    )


def _read_schema(given: str | os.PathLike[str]) -> str:
    path = local_path(given, "schema")
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_SCHEMA_BYTES + 1)
    except OSError as error:
        raise StoreIOError(error.errno, f"{error.strerror} (schema)", str(path)) from error
    if len(data) > _MAX_SCHEMA_BYTES:
        raise ArgumentError(f"schema: expected a file of at most {_MAX_SCHEMA_BYTES} bytes, got a longer one: {path}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ArgumentError(f"schema: expected UTF-8, got another byte at {error.start} of {path}") from error


def bad_bodies(reading: _native.Scan) -> list[BadBody]:
    return [BadBody(*entry) for entry in reading.bad_bodies[0]]


def warn_of_bad_bodies(reading: _native.Scan, line: CallerLine) -> None:
    """Warns of the bodies that a scan could not decode, unless it failed because of them."""
    text = describe_bad_bodies(reading)
    if text is not None and not reading.fails_on_bad_bodies:
        line.warn(f"{text}, and Scan.decode_errors lists them", DecodeWarning)


def describe_bad_bodies(reading: _native.Scan) -> str | None:
    """Returns the number of bodies that a scan could not decode, and the first of them. None if there are none."""
    entries, more = reading.bad_bodies
    if not entries:
        return None
    first, count = BadBody(*entries[0]), len(entries) + more
    place = f"message {first.queue_offset} of queue {first.queue_id} of topic {first.topic}"
    place += "" if first.broker_name is None else f" of broker {first.broker_name}"
    return f"{count} bodies could not be decoded, the first that of {place}: {first.reason}; their value is null"


def infer(bodies: Any, *, sample_bytes: Number = _SAMPLE_BYTES) -> str:
    """Returns DDL for bodies of JSON, to be read, corrected and passed as `schema`. Nothing applies it by itself.

    Whole numbers are `bigint`, other numbers `double`, and fields that are always null `string`. A field that is a text
    in one body and a number in another is `string`, which takes both. Times and amounts are what they are in JSON, so
    say `timestamp` or `decimal(10,2)` yourself.

    Args:
        bodies: A scan, a table or other Arrow data with a column `body`; or bodies as bytes or text.
        sample_bytes: Bodies are read up to this number of bytes.

    Raises:
        ArgumentError: No body is a JSON object, or a field has values that no type holds together.

    Warns:
        DecodeWarning: Some bodies are no JSON objects. They do not count.

    Example:
        >>> import rmqfast
        >>> rmqfast.infer([b'{"id": 1, "lines": [{"sku": "a", "n": 2}]}', b'{"id": 2, "paid": true}'])
        'id bigint, lines array<struct<sku: string, n: bigint>>, paid boolean'
    """
    limit = integer("sample_bytes", sample_bytes, 1, 1 << 30)
    ddl, bad, _ = _native.infer_json(_bodies(bodies, limit), limit)
    if bad:
        CallerLine().warn(f"{bad} of the bodies are no JSON objects, and do not count", DecodeWarning)
    return ddl


def _bodies(given: Any, limit: int) -> Any:
    if isinstance(given, bytes | bytearray | memoryview | str):
        return [_body(given)]
    if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
        return given
    if not isinstance(given, Iterable):
        raise ArgumentTypeError(f"bodies: expected Arrow data or bodies, got {given!r} ({type(given).__name__})")
    bodies: list[bytes] = []
    total = 0
    for body in given:
        bodies.append(_body(body))
        total += len(bodies[-1])
        # an iterable may have no end
        if total > limit:
            break
    return bodies


def _body(given: Any) -> bytes:
    if isinstance(given, str):
        return given.encode()
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    raise ArgumentTypeError(f"bodies: expected bytes or text, got {given!r} ({type(given).__name__})")
