"""Bodies of Avro as the column `value`: against a plain decoder, with bytes that are no Avro, and with prefixes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqfast import errors
from tests.reference.avro import NotAvro, decode, encode, zigzag
from tests.store.avro_bodies import GOOD, MAGIC, ROW, TEXT
from tests.store.bodies import store_of
from tests.store.test_decode import values_of

pytestmark = pytest.mark.slow


@st.composite
def schemas(draw: Any) -> dict[str, Any]:
    count = 0

    def named(**parts: Any) -> dict[str, Any]:
        nonlocal count
        count += 1
        return {"name": f"N{count}", **parts}

    def kind(depth: int) -> Any:  # noqa: PLR0911 - one line a type
        simple = ["boolean", "int", "long", "double", "bytes", "string", "enum", "fixed"]
        choice = draw(st.sampled_from(simple + ["array", "map", "record", "union"] * (depth < 3)))
        match choice:
            case "enum":
                return named(type="enum", symbols=["A", "B", "C"])
            case "fixed":
                return named(type="fixed", size=draw(st.integers(1, 5)))
            case "array":
                return {"type": "array", "items": kind(depth + 1)}
            case "map":
                return {"type": "map", "values": kind(depth + 1)}
            case "record":
                return record(depth + 1)
            case "union":
                other = kind(depth + 1)
                return other if isinstance(other, list) else ["null", other]
        return choice

    def record(depth: int) -> dict[str, Any]:
        names = [f"f{at}" for at in range(draw(st.integers(1, 4)))]
        return named(type="record", fields=[{"name": name, "type": kind(depth)} for name in names])

    return record(0)


def values(schema: Any) -> Any:  # noqa: C901, PLR0911 - one line a type
    match schema:
        case "boolean":
            return st.booleans()
        case "int":
            return st.integers(-(1 << 31), (1 << 31) - 1)
        case "long":
            return st.integers(-(1 << 63), (1 << 63) - 1)
        case "double":
            return st.floats(allow_nan=False)
        case "bytes":
            return st.binary(max_size=5)
        case "string":
            return st.text(max_size=4)
        case [_, other]:
            return st.none() | values(other)
        case {"type": "enum", "symbols": symbols}:
            return st.sampled_from(symbols)
        case {"type": "fixed", "size": size}:
            return st.binary(min_size=size, max_size=size)
        case {"type": "array", "items": items}:
            return st.lists(values(items), max_size=3)
        case {"type": "map", "values": inner}:
            return st.dictionaries(st.text(max_size=2), values(inner), max_size=3)
        case {"fields": fields}:
            return st.fixed_dictionaries({field["name"]: values(field["type"]) for field in fields})
    raise ValueError(schema)


def reference(schema: Any, body: bytes) -> Any:
    try:
        return decode(schema, body)
    except NotAvro:
        return None


@st.composite
def cases(draw: Any) -> tuple[dict[str, Any], list[bytes]]:
    schema = draw(schemas())
    bodies = [encode(schema, value) for value in draw(st.lists(values(schema), min_size=1, max_size=6))]
    for at, body in enumerate(bodies):
        match draw(st.integers(0, 6)):
            case 0:
                bodies[at] = draw(st.binary(max_size=12))
            case 1:
                cut = draw(st.integers(0, len(body)))
                bodies[at] = body[:cut] + draw(st.binary(max_size=2)) + body[cut + 1 :]
    return schema, bodies


@settings(max_examples=80, deadline=None)
@given(cases(), st.integers(1, 3), st.data())
def test_random_records_are_those_of_a_plain_decoder(
    case: tuple[dict[str, Any], list[bytes]], batch_rows: int, data: st.DataObject
) -> None:
    schema, bodies = case
    names = [field["name"] for field in schema["fields"]]
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    expected = [reference(schema, body) for body in bodies]
    with tempfile.TemporaryDirectory() as directory, store_of(Path(directory), bodies) as store:
        options: Any = {"decode": "avro", "schema": json.dumps(schema), "batch_rows": batch_rows}
        scan = store.scan("T", columns=["value"], **options)
        # nan is not equal to itself
        assert repr(values_of(scan)) == repr(expected)
        assert len(scan.decode_errors) == expected.count(None)
        narrow = store.scan("T", columns=[f"value.{name}" for name in chosen], **options)
        kept = [value and {name: value[name] for name in names if name in chosen} for value in expected]
        assert repr(values_of(narrow)) == repr(kept)


HOSTILE = {
    "nothing": b"",
    "half": GOOD[:-3],
    "more": GOOD + b"\0",
    "twice": GOOD + GOOD,
    "json": b'{"id": 7}',
    "a long without end": b"\xff" * 40,
    "a branch too many": zigzag(7) + zigzag(2) + b"",
    "a symbol too many": zigzag(7) + zigzag(0) + zigzag(2) + b"\0\0",
    "a long string": zigzag(7) + zigzag(1) + zigzag(1 << 40),
    "a negative length": zigzag(7) + zigzag(1) + zigzag(-5),
    "no UTF-8": zigzag(7) + zigzag(1) + zigzag(1) + b"\xff" + zigzag(0) + b"\0\0",
    "billions of lines": zigzag(7) + zigzag(0) + zigzag(0) + zigzag((1 << 31) - 1) + b"\0" * 30,
    "the least count": zigzag(7) + zigzag(0) + zigzag(0) + zigzag(-(1 << 63)) + zigzag(0) + b"\0\0",
    "a block of another size": zigzag(7)
    + zigzag(0)
    + zigzag(0)
    + zigzag(-1)
    + zigzag(9)
    + zigzag(0)
    + zigzag(5)
    + b"\0\0",
}


@pytest.mark.parametrize("threads", [1, 2])
def test_bytes_that_are_no_avro_do_not_spoil_their_neighbours(tmp_path: Path, threads: int) -> None:
    bodies = [each for bad in HOSTILE.values() for each in (GOOD, bad, GOOD)]
    with store_of(tmp_path, bodies) as store:
        scan = store.scan("T", decode="avro", schema=TEXT, threads=threads, columns=["value"])
        assert values_of(scan) == [ROW if body == GOOD else None for body in bodies]
        assert len(scan.decode_errors) == len(HOSTILE)
        failing = store.scan("T", decode="avro", schema=TEXT, threads=threads, on_error="fail")
        with pytest.raises(
            errors.DecodeError, match="body of message 0 of queue 1 of topic T: expected a varint at byte 0"
        ):
            failing.to_arrow()


def test_a_schema_is_text_or_a_path(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(TEXT)
    with store_of(tmp_path / "store", [GOOD]) as store:
        for schema in (TEXT, f"\n {TEXT}", file, str(file)):
            assert values_of(store.scan("T", decode="avro", schema=schema, on_error="fail", columns=["value"])) == [ROW]


def test_fields_within_records_and_lists_are_chosen(tmp_path: Path) -> None:
    with store_of(tmp_path, [GOOD]) as store:
        scan = store.scan("T", decode="avro", schema=TEXT, columns=["value.lines.n", "value.state"], on_error="fail")
        assert values_of(scan) == [{"state": "PAID", "lines": [{"n": 1}, {"n": -2}]}]


def test_times_have_the_zone_of_other_columns(tmp_path: Path) -> None:
    at = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
    schema = {"type": "record", "name": "R", "fields": [at]}
    with store_of(tmp_path, [zigzag(1_700_000_000_123)]) as store:
        table = store.scan(
            "T", decode="avro", schema=json.dumps(schema), columns=["store_timestamp", "value"]
        ).to_arrow()
        assert table.schema.field("value").type.field("at").type == table.schema.field("store_timestamp").type
        [row] = table.to_pylist()
        assert row["value"]["at"].isoformat() == "2023-11-14T22:13:20.123000+00:00"


def test_prefixes_name_one_schema(tmp_path: Path) -> None:
    confluent = [b"\0\0\0\0\7" + GOOD, b"\0\0\0\0\x08" + GOOD, GOOD]
    with store_of(tmp_path / "confluent", confluent) as store:
        arguments: Any = {"decode": "avro", "schema": TEXT, "framing": "confluent", "columns": ["value"]}
        scan = store.scan("T", **arguments, schema_id=7)
        assert values_of(scan) == [ROW, None, None]
        assert scan.decode_errors[0].reason.startswith("expected schema id 7, got 8; a scan decodes by one schema")
        with pytest.raises(
            errors.ArgumentError, match="schema_id: expected the id that the registry has for the schema"
        ):
            store.scan("T", **arguments)


def test_a_fingerprint_is_that_of_the_schema(tmp_path: Path) -> None:
    fingerprint = rabin(CANONICAL.encode())
    single = [MAGIC + fingerprint + GOOD, MAGIC + bytes(8) + GOOD, b"\xc3\x02" + fingerprint + GOOD, MAGIC]
    with store_of(tmp_path, single) as store:
        scan = store.scan("T", decode="avro", schema=TEXT, framing="single-object", columns=["value"])
        assert values_of(scan) == [ROW, None, None, None]
        reasons = [body.reason for body in scan.decode_errors]
        assert reasons[0].startswith(
            f"expected the schema with fingerprint {fingerprint[::-1].hex()}, got 0000000000000000;"
        )
        assert reasons[1:] == [
            "expected a prefix that begins with [C3, 01], got [C3, 02]",
            "expected a prefix of 10 bytes, got a body of 2",
        ]


# by the rules of the specification: full names, no defaults, attributes in order, no spaces
CANONICAL = (
    '{"name":"shop.Order","type":"record","fields":[{"name":"id","type":"long"},{"name":"note","type":["null","string"]},'
    '{"name":"state","type":{"name":"shop.State","type":"enum","symbols":["NEW","PAID"]}},'
    '{"name":"lines","type":{"type":"array","items":{"name":"shop.Line","type":"record","fields":'
    '[{"name":"sku","type":"string"},{"name":"n","type":"int"}]}}},'
    '{"name":"props","type":{"type":"map","values":"double"}}]}'
)


def rabin(data: bytes) -> bytes:
    """CRC-64-AVRO, as the specification has it."""
    empty = 0xC15D213AA4D7A795
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (empty if value & 1 else 0)
        table.append(value)
    value = empty
    for byte in data:
        value = (value >> 8) ^ table[(value ^ byte) & 0xFF]
    return value.to_bytes(8, "little")


def record(kind: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]})


WRONG = [
    ("{", "schema: expected an Avro schema, got EOF"),
    ('{"type": "record"}', 'schema: expected "fields", got'),
    ('["null", "int"]', "schema: expected a record, got"),
    (record("strng"), 'schema: expected a type that is defined before, and does not hold itself, got "strng"'),
    (record(["null", "R"]), 'schema: expected a type that is defined before, and does not hold itself, got "R"'),
    (record({"type": "array", "items": "null"}), 'schema: expected items that take bytes, got "null"'),
    (record("null"), "schema: expected fields that take bytes"),
    (record({"type": "fixed", "name": "F", "size": 1 << 40}), "schema: expected a size from 1 to 65536"),
]


@pytest.mark.parametrize(("schema", "text"), WRONG, ids=range(len(WRONG)))
def test_wrong_schemas_are_refused(tmp_path: Path, schema: str, text: str) -> None:
    with store_of(tmp_path, [GOOD]) as store, pytest.raises(errors.ArgumentError, match=text):
        store.scan("T", decode="avro", schema=schema)
