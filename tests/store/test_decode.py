"""Bodies of JSON as the column `value`: against `json.loads`, with bodies that are bad, and by chosen fields."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rmqfast
from rmqfast import BadBody, DamageWarning, DecodeWarning, errors
from tests.store.bodies import GOOD, HOSTILE, SCHEMA, VALUE, store_of

pytestmark = pytest.mark.slow


def values_of(scan: rmqfast.Scan) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecodeWarning)
        values: list[Any] = scan.to_arrow().column("value").to_pylist()
        return values


class Number(str):
    """A number as its text in the body."""

    __slots__ = ()


class Misfit(Exception):
    """A value does not fit its type."""


def reference(body: bytes, fields: dict[str, Any]) -> Any:
    """The value that a body has for plain Python, None if it is bad."""

    def refuse(_: str) -> Any:
        raise ValueError

    try:
        value = json.loads(body.decode(), parse_int=Number, parse_float=Number, parse_constant=refuse)
        # half a surrogate pair is no text
        json.dumps(value, ensure_ascii=False).encode()
        if not isinstance(value, dict):
            return None
        return fit(value, fields)
    except (ValueError, Misfit):
        return None


def fit(value: Any, kind: Any) -> Any:  # noqa: PLR0911 - one line a type
    if value is None:
        return None
    match kind, value:
        case dict(), dict():
            return {name: fit(value.get(name), inner) for name, inner in kind.items()}
        case [item], list():
            return [fit(each, item) for each in value]
        case ("map", inner), dict():
            return [(key, fit(each, inner)) for key, each in value.items()]
        case "string", bool():
            return "true" if value else "false"
        case "string", str():
            return str(value)
        case "boolean", bool():
            return value
        case "bigint" | "tinyint", Number():
            return whole(value, 63 if kind == "bigint" else 7)
        case "double", Number():
            return float(value)
    raise Misfit


def whole(number: Number, bits: int) -> int:
    try:
        value = int(number)
    except ValueError:
        as_float = float(number)
        if not (as_float.is_integer() and abs(as_float) <= 1 << 53):
            raise Misfit from None
        value = int(as_float)
    if not -(1 << bits) <= value < 1 << bits:
        raise Misfit
    return value


def ddl(kind: Any, *, top: bool = False) -> str:
    match kind:
        case dict():
            fields = ", ".join(f"`{name}` {ddl(inner)}" for name, inner in kind.items())
            return fields if top else f"struct<{fields}>"
        case [item]:
            return f"array<{ddl(item)}>"
        case ("map", inner):
            return f"map<string, {ddl(inner)}>"
    return str(kind)


# letters that are neither a number nor infinity
TEXTS = st.text('xyzé\n"\\🚀', max_size=5)
SCALARS = ("bigint", "tinyint", "double", "string", "boolean")
NAMES = st.sampled_from(["a", "b", "cé", "d.e", 'q"'])
KINDS: Any = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        st.dictionaries(NAMES, inner, min_size=1, max_size=3),
        st.lists(inner, min_size=1, max_size=1),
        st.tuples(st.just("map"), inner),
    ),
    max_leaves=6,
)
OTHERS = st.one_of(st.integers(-300, 300), st.floats(allow_nan=False, allow_infinity=False), TEXTS, st.booleans())


def documents(kind: Any) -> Any:
    """Values that mostly fit a type."""
    match kind:
        case dict():
            right: Any = st.fixed_dictionaries({}, optional={k: documents(v) for k, v in kind.items()} | {"z": OTHERS})
        case [item]:
            right = st.lists(documents(item), max_size=3)
        case ("map", inner):
            right = st.dictionaries(TEXTS, documents(inner), max_size=3)
        case "bigint":
            right = st.integers(-(1 << 64), 1 << 64) | st.integers(-9, 9)
        case "tinyint":
            right = st.integers(-130, 130)
        case "double":
            right = st.floats(allow_nan=False, allow_infinity=False)
        case "string":
            right = TEXTS
        case _:
            right = st.booleans()
    return st.one_of(right, right, right, right, st.none(), OTHERS)


@st.composite
def cases(draw: Any) -> tuple[dict[str, Any], list[bytes]]:
    fields = draw(st.dictionaries(NAMES, KINDS, min_size=1, max_size=4))
    document = st.fixed_dictionaries({}, optional={name: documents(kind) for name, kind in fields.items()})
    bodies = []
    for made in draw(st.lists(document, min_size=1, max_size=12)):
        body = json.dumps(made, ensure_ascii=draw(st.booleans())).encode()
        if draw(st.integers(0, 5)) == 0:
            at = draw(st.integers(0, len(body)))
            body = (
                body[:at]
                + draw(st.sampled_from([b"", b",", b"x", b"}", b'"', b"\xff", b" ", b"1", b"\\"]))
                + body[at + 1 :]
            )
        bodies.append(body)
    return fields, bodies


@settings(max_examples=80, deadline=None)
@given(cases(), st.sampled_from([None, "zlib", "lz4"]), st.integers(1, 3), st.integers(1, 7))
def test_random_documents_are_those_of_python(
    case: tuple[dict[str, Any], list[bytes]], compression: str | None, threads: int, batch_rows: int
) -> None:
    fields, bodies = case
    with (
        tempfile.TemporaryDirectory() as directory,
        store_of(Path(directory), bodies, compression=compression) as store,
    ):
        columns = ["physical_offset", "body", "value"]
        options: Any = {"threads": threads, "batch_rows": batch_rows, "columns": columns, "decode": "json"}
        scan = store.scan("T", schema=ddl(fields, top=True), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DecodeWarning)
            rows = scan.to_arrow().sort_by("physical_offset").to_pylist()
        assert [row["body"] for row in rows] == bodies
        expected = [reference(body, fields) for body in bodies]
        assert [row["value"] for row in rows] == expected
        bad = {row["physical_offset"] for row, value in zip(rows, expected, strict=True) if value is None}
        assert {body.physical_offset for body in scan.decode_errors} == bad


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch_rows", [1, 16_384])
def test_a_bad_body_does_not_spoil_its_neighbours(tmp_path: Path, threads: int, batch_rows: int) -> None:
    bodies = [each for bad in HOSTILE for each in (GOOD, bad, GOOD)]
    with store_of(tmp_path, bodies) as store:
        columns = ["physical_offset", "body", "value"]
        scan = store.scan("T", decode="json", schema=SCHEMA, columns=columns, threads=threads, batch_rows=batch_rows)
        for _ in range(2):
            with pytest.warns(
                DecodeWarning, match=f"^{len(HOSTILE)} bodies could not be decoded, the first that of message"
            ):
                rows = scan.to_arrow().sort_by("physical_offset").to_pylist()
            assert [row["value"] for row in rows] == [VALUE if body == GOOD else None for body in bodies]
            assert len(scan.decode_errors) == len(HOSTILE)
            assert all(0 < len(body.reason) < 400 for body in scan.decode_errors)


DOORS: dict[str, Callable[[rmqfast.Scan], object]] = {
    "batches": lambda scan: list(scan.batches()),
    "to_arrow": lambda scan: scan.to_arrow(),
    "to_pandas": lambda scan: scan.to_pandas(),
    "to_polars": lambda scan: scan.to_polars(),
    "pa.table": pa.table,
    "pl.DataFrame": pl.DataFrame,
    "duckdb": lambda scan: duckdb.connect().execute("SELECT sum(value.id) FROM scan").fetchone(),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_every_reader_is_warned_at_its_line_or_fails(
    tmp_path: Path, door: Callable[[rmqfast.Scan], object], threads: int
) -> None:
    with store_of(tmp_path, [GOOD, b"nope", GOOD]) as store:
        arguments: Any = {"decode": "json", "schema": SCHEMA, "threads": threads, "columns": ["value"]}
        scan = store.scan("T", **arguments)
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                door(scan)
            assert [(warning.category, warning.filename) for warning in caught] == [(DecodeWarning, __file__)]
        failing = store.scan("T", **arguments, on_error="fail")
        reason = "body of message 0 of queue 1 of topic T: expected a JSON object at byte 0, got 'n'"
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught, pytest.raises(Exception, match=reason):
                door(failing)
            assert caught == []
            assert [body.queue_id for body in failing.decode_errors] == [1]
        with pytest.raises(errors.DecodeError, match='on_error="null" gives null in its place'):
            failing.to_arrow()


def test_nothing_is_given_behind_a_body_that_fails(tmp_path: Path) -> None:
    with store_of(tmp_path, [GOOD, GOOD, b"nope", GOOD]) as store:
        scan = store.scan("T", decode="json", schema=SCHEMA, on_error="fail", batch_rows=1)
        rows: list[int] = []
        with pytest.raises(errors.DecodeError):
            rows.extend(batch.num_rows for batch in scan.batches())
        assert rows == [1, 1]


def test_bad_bodies_are_sampled_and_counted(tmp_path: Path) -> None:
    with store_of(tmp_path, [b'{"id": "x"}'] * 250) as store:
        scan = store.scan("T", decode="json", schema="id bigint", batch_rows=64)
        with pytest.warns(DecodeWarning, match="^250 bodies"):
            assert scan.to_arrow().column("value").null_count == 250
        assert len(scan.decode_errors) == 100
        first = scan.decode_errors[0]
        assert first == BadBody("T", 0, 0, 0, 'id: expected Int64, got "x"')
        assert "queue offset" in first._repr_html_()
        every = store.scan("T", decode="json", schema="id bigint", batch_rows=64, on_error="list", threads=2)
        with pytest.warns(DecodeWarning, match="^250 bodies"):
            assert every.to_arrow().num_rows == 250
        assert len({bad.physical_offset for bad in every.decode_errors}) == 250


def test_chosen_fields_are_those_of_the_whole_value(tmp_path: Path) -> None:
    with store_of(tmp_path, [GOOD, b"{}"]) as store:

        def read(*columns: str) -> list[Any]:
            scan = store.scan("T", decode="json", schema=SCHEMA, columns=columns)
            rows: list[Any] = scan.to_arrow().to_pylist()
            return rows

        whole = store.scan("T", decode="json", schema=SCHEMA).to_arrow()
        assert whole.column_names == [*rmqfast.store.COLUMNS, "value"]
        assert whole.column("value").to_pylist() == [
            VALUE,
            {"id": None, "customer": None, "lines": None, "props": None},
        ]
        assert read("value", "value.id") == [{"value": value} for value in whole.column("value").to_pylist()]
        # the value stands behind the other columns
        assert read("value.id", "queue_id") == [
            {"queue_id": 0, "value": {"id": 7}},
            {"queue_id": 1, "value": {"id": None}},
        ]
        chosen = [
            {"value": {"customer": {"id": "c"}, "lines": [{"n": 1}]}},
            {"value": {"customer": None, "lines": None}},
        ]
        assert read("value.lines.n", "value.customer.id") == chosen
        assert read("tags") == [{"tags": None}, {"tags": None}]


def test_only_chosen_fields_can_be_bad(tmp_path: Path) -> None:
    with store_of(tmp_path, [b'{"id": "x", "customer": {"id": "c", "age": 1.5}}']) as store:
        scan = store.scan("T", decode="json", schema=SCHEMA, columns=["value.customer.id"], on_error="fail")
        assert values_of(scan) == [{"customer": {"id": "c"}}]
        # not decoded, so not bad
        assert store.scan("T", decode="json", schema=SCHEMA, columns=["keys"], on_error="fail").to_arrow().num_rows == 1


def test_a_damaged_body_is_damage_and_no_bad_body(tmp_path: Path) -> None:
    with store_of(tmp_path, [GOOD, GOOD], compression="zlib") as store:
        scan = store.scan("T", decode="json", schema=SCHEMA, columns=["value"], max_body_bytes=10)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert scan.to_arrow().column("value").to_pylist() == [None, None]
        assert [warning.category for warning in caught] == [DamageWarning]
        assert (len(scan.damage), scan.decode_errors) == (2, [])


def test_schemas_of_arrow_and_of_a_file_decode_the_same(tmp_path: Path) -> None:
    file = tmp_path / "orders.ddl"
    file.write_text("id bigint, at timestamp, amount decimal(6,2), day date, flag boolean, raw binary")
    body = {
        "id": 1,
        "at": "2026-11-29T01:02:03.5+01:00",
        "amount": 3.25,
        "day": "2026-11-29",
        "flag": True,
        "raw": "00ff",
    }
    arrow = pa.schema(
        [
            ("id", pa.int64()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("amount", pa.decimal128(6, 2)),
            ("day", pa.date32()),
            ("flag", pa.bool_()),
            ("raw", pa.binary()),
        ]
    )
    with store_of(tmp_path / "store", [json.dumps(body).encode()]) as store:
        tables = [
            store.scan("T", decode="json", schema=schema, columns=["value"], on_error="fail").to_arrow()
            for schema in (file, file.read_text(), arrow, pa.struct(list(arrow)))
        ]
        assert tables[0].schema.field("value").type == pa.struct(list(arrow))
        assert all(table == tables[0] for table in tables)
        [value] = tables[0].column("value").to_pylist()
        assert (value["id"], str(value["amount"]), value["raw"]) == (1, "3.25", b"\x00\xff")
        assert value["at"].isoformat() == "2026-11-29T00:02:03.500000+00:00"
        required = pa.schema(
            [pa.field("id", pa.int64(), nullable=False), pa.field("other", pa.int64(), nullable=False)]
        )
        scan = store.scan("T", decode="json", schema=required, columns=["value"])
        assert values_of(scan) == [None]
        assert scan.decode_errors[0].reason == "other: expected a value, got null"


def test_a_prefix_of_confluent_is_passed(tmp_path: Path) -> None:
    bodies = [b"\0\0\0\0\7" + GOOD, GOOD, b"\0\0\0\0\x08" + GOOD, b"\0\0"]
    with store_of(tmp_path, bodies) as store:

        def read(**arguments: Any) -> tuple[list[bool], list[str]]:
            scan = store.scan("T", decode="json", schema=SCHEMA, columns=["value"], framing="confluent", **arguments)
            return [value == VALUE for value in values_of(scan)], [body.reason for body in scan.decode_errors]

        other = "expected a prefix that begins with [00], got [7B]"
        short = "expected a prefix of 5 bytes, got a body of 2"
        assert read() == ([True, False, True, False], [other, short])
        id_of_8 = "expected schema id 7, got 8; a scan decodes by one schema: scan again with the other one"
        assert read(schema_id=7) == ([True, False, False, False], [other, id_of_8, short])


WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"decode": "json"},
        "schema: expected DDL as 'id bigint, name string', an Arrow schema, or an .avsc for Avro, got none",
    ),
    ({"decode": "json", "schema": 5}, "schema: expected DDL .* got 5"),
    ({"decode": "json", "schema": "id strng"}, "schema: expected a type .* got 'strng' at position 3"),
    ({"decode": "json", "schema": ""}, "schema: expected the name of a field, got the end at position 0"),
    ({"decode": "json", "schema": pa.schema([("a", pa.duration("s"))])}, "schema: expected types that bodies can be"),
    ({"decode": "json", "schema": pa.schema([])}, "schema: expected a field at least, got none"),
    ({"decode": "yaml", "schema": "id bigint"}, "decode: expected 'json' or 'avro', got 'yaml'"),
    ({"decode": "json", "schema": "id bigint", "framing": "kafka"}, "framing: expected 'none', 'confluent' or"),
    (
        {"decode": "json", "schema": "id bigint", "on_error": "skip"},
        "on_error: expected 'null', 'list' or 'fail', got 'skip'",
    ),
    ({"decode": "json", "schema": "id bigint", "schema_id": 1}, "schema_id: expected framing='confluent' with it"),
    ({"decode": "json", "schema": "id bigint", "schema_id": -1}, "schema_id: expected"),
    ({"decode": "json", "schema": "id bigint", "columns": ["value.ix"]}, "unknown column 'ix'; did you mean id?"),
    (
        {"decode": "json", "schema": "id bigint", "columns": ["value.id.x"]},
        "columns: expected no 'x' behind id, got Int64",
    ),
    ({"columns": ["value.id"]}, "unknown column 'value.id'; its fields need decode=; the columns are"),
    ({"schema": "id bigint"}, "schema: expected decode= with it, got none"),
    ({"framing": "confluent"}, "framing: expected decode= with it, got none"),
    (
        {"decode": "avro", "schema": pa.schema([("a", pa.int64())])},
        "schema: expected the text of an .avsc, or a path to one",
    ),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG, ids=range(len(WRONG)))
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: dict[str, Any], text: str) -> None:
    with (
        store_of(tmp_path, [GOOD]) as store,
        pytest.raises((errors.ArgumentError, errors.UnknownColumnError), match=text),
    ):
        store.scan("T", **arguments)


def test_a_schema_file_that_is_missing_or_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary.ddl").write_bytes(b"\xff")
    with store_of(tmp_path / "store", [GOOD]) as store:
        with pytest.raises(errors.StoreIOError, match=r"missing\.ddl"):
            store.scan("T", decode="json", schema=tmp_path / "missing.ddl")
        with pytest.raises(errors.ArgumentError, match="schema: expected UTF-8, got another byte at 0"):
            store.scan("T", decode="json", schema=tmp_path / "binary.ddl")


def test_a_small_body_cannot_ask_for_much_memory(tmp_path: Path) -> None:
    wide = ", ".join(f"f{n}: bigint" for n in range(2000))
    with store_of(tmp_path, [b'{"a":[' + b",".join([b"{}"] * 10_000) + b"]}", b'{"a":[{"f7":1}]}']) as store:
        scan = store.scan("T", decode="json", schema=f"a array<struct<{wide}>>", columns=["value"])
        first, second = values_of(scan)
        assert first is None
        assert second["a"][0]["f7"] == 1
        assert "expected values of at most" in scan.decode_errors[0].reason


def test_batches_stay_small_whatever_bodies_decode_to(tmp_path: Path) -> None:
    wide = ", ".join(f"f{n}: bigint" for n in range(500))
    with store_of(tmp_path, [b'{"a":[{},{},{},{}]}'] * 300) as store:
        scan = store.scan("T", decode="json", schema=f"a array<struct<{wide}>>", columns=["value"])
        batches = list(scan.batches())
        assert sum(batch.num_rows for batch in batches) == 300
        assert max(batch.nbytes for batch in batches) < 4 << 20


def test_duckdb_and_polars_read_fields(tmp_path: Path) -> None:
    with store_of(tmp_path, [GOOD, GOOD]) as store:
        scan = store.scan("T", decode="json", schema=SCHEMA, columns=["value"])
        assert duckdb.connect().execute("SELECT sum(value.id), max(value.lines[1].sku) FROM scan").fetchone() == (
            14,
            "a",
        )
        assert scan.to_polars().unnest("value").get_column("id").to_list() == [7, 7]


def test_a_schema_is_inferred_from_what_arrow_or_python_holds(tmp_path: Path) -> None:
    expected = (
        "id bigint, customer struct<id: string>, lines array<struct<sku: string, n: bigint>>, props struct<x: double>"
    )
    with store_of(tmp_path, [GOOD, GOOD]) as store:
        scan = store.scan("T")
        table = scan.to_arrow()
        for bodies in (scan, table, table.to_batches()[0], scan.to_polars(), [GOOD, GOOD.decode()], GOOD, iter([GOOD])):
            assert rmqfast.infer(bodies) == expected
        value = store.scan(
            "T", decode="json", schema=rmqfast.infer(scan), columns=["value"], on_error="fail"
        ).to_arrow()
        assert value.column("value").to_pylist()[0]["lines"] == [{"sku": "a", "n": 1}]


def test_inference_counts_what_it_does_not_read(tmp_path: Path) -> None:
    with pytest.warns(DecodeWarning, match="^1 of the bodies are no JSON objects"):
        assert rmqfast.infer([b'{"a": 1}', b"nope"]) == "a bigint"
    # the second body lies behind the limit
    assert rmqfast.infer([b'{"a": 1}', b'{"b": 1}'], sample_bytes=8) == "a bigint"
    for bodies, text in [
        ([], "bodies: expected JSON objects with a field"),
        ([b"[]"], "bodies: expected JSON objects with a field"),
        ([b'{"a": 1}', b'{"a": []}'], "bodies: expected values of one type at a, got others and arrays"),
        (5, "bodies: expected Arrow data or bodies, got 5"),
        ([5], "bodies: expected bytes or text, got 5"),
        (pa.table({"x": [1]}), "bodies: expected a column 'body', got x"),
        (pa.table({"body": [1]}), "bodies: expected a column 'body' of bytes or text, got Int64"),
    ]:
        with pytest.raises(errors.ArgumentError, match=text):
            rmqfast.infer(bodies)
