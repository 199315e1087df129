"""Random queries over the columns of a scan, in the languages of the engines that read it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
from datafusion import SessionContext

Dialect = Literal["duckdb", "datafusion"]
Operator = Literal["=", "<>", "<", "<=", ">", ">="]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FLIPPED: dict[Operator, Operator] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARE: dict[Operator, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Instant:
    """A time of a unit of Arrow: "s", "ms", "us" or "ns"."""

    count: int
    unit: str

    @property
    def scalar(self) -> pa.Scalar:
        return pa.scalar(self.count, pa.timestamp(self.unit, "UTC"))

    @property
    def text(self) -> str:
        """ISO 8601 with 9 digits of the second."""
        nanos = self.count * {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[self.unit]
        return f"{EPOCH + timedelta(seconds=nanos // 10**9):%Y-%m-%dT%H:%M:%S}.{nanos % 10**9:09d}"


class Condition(Protocol):
    def sql(self, dialect: Dialect) -> str: ...
    def polars(self) -> pl.Expr: ...
    def arrow(self) -> pc.Expression: ...


def sql_value(value: object, dialect: Dialect) -> str:
    if isinstance(value, Instant):
        return _sql_time(value, dialect)
    if isinstance(value, bytes):
        escaped = "".join(f"\\x{byte:02X}" for byte in value)
        return f"'{escaped}'::BLOB" if dialect == "duckdb" else f"X'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else str(value)


def _sql_time(value: Instant, dialect: Dialect) -> str:
    if dialect == "duckdb":
        # it compares no nanoseconds with a time of a zone
        kind = {"s": "TIMESTAMP_S", "ms": "TIMESTAMP_MS"}.get(value.unit, "TIMESTAMPTZ")
        return f"'{value.text[:-3]}'::{kind}"
    if value.unit == "ns":
        return f"timestamp '{value.text}'"
    name = {"s": "Second", "ms": "Millisecond", "us": "Microsecond"}[value.unit]
    return f"arrow_cast('{value.text}Z', 'Timestamp({name}, Some(\"UTC\"))')"


def polars_value(value: object) -> pl.Expr:
    if isinstance(value, Instant):
        unit: Any = "ms" if value.unit == "s" else value.unit
        count = value.count * (1000 if value.unit == "s" else 1)
        return pl.lit(pl.Series([count]).cast(pl.Datetime(unit, "UTC")).item(), dtype=pl.Datetime(unit, "UTC"))
    return pl.lit(value)


def arrow_value(value: object) -> pc.Expression:
    return pc.scalar(value.scalar if isinstance(value, Instant) else value)


@dataclass(frozen=True)
class Comparison:
    column: str
    operator: Operator
    value: object
    is_flipped: bool

    def sql(self, dialect: Dialect) -> str:
        column, value = f'"{self.column}"', sql_value(self.value, dialect)
        if self.is_flipped:
            return f"{value} {_FLIPPED[self.operator]} {column}"
        return f"{column} {self.operator} {value}"

    def polars(self) -> pl.Expr:
        return self._compared(pl.col(self.column), polars_value(self.value))  # type: ignore[no-any-return]

    def arrow(self) -> pc.Expression:
        return self._compared(pc.field(self.column), arrow_value(self.value))

    def _compared(self, column: Any, value: Any) -> Any:
        if self.is_flipped:
            return _COMPARE[_FLIPPED[self.operator]](value, column)
        return _COMPARE[self.operator](column, value)


@dataclass(frozen=True)
class OfColumns:
    left: str
    operator: Operator
    right: str

    def sql(self, dialect: Dialect) -> str:
        del dialect
        return f'"{self.left}" {self.operator} "{self.right}"'

    def polars(self) -> pl.Expr:
        compared: pl.Expr = _COMPARE[self.operator](pl.col(self.left), pl.col(self.right))
        return compared

    def arrow(self) -> pc.Expression:
        return _COMPARE[self.operator](pc.field(self.left), pc.field(self.right))


@dataclass(frozen=True)
class OneOf:
    column: str
    values: list[Any]

    def sql(self, dialect: Dialect) -> str:
        return f'"{self.column}" IN ({", ".join(sql_value(value, dialect) for value in self.values)})'

    def polars(self) -> pl.Expr:
        if any(isinstance(value, Instant) for value in self.values):
            return pl.any_horizontal([pl.col(self.column) == polars_value(value) for value in self.values])
        return pl.col(self.column).is_in(self.values)

    def arrow(self) -> pc.Expression:
        instants = [value for value in self.values if isinstance(value, Instant)]
        if instants:
            counts = [value and value.count for value in self.values]
            return pc.field(self.column).isin(pa.array(counts, pa.timestamp(instants[0].unit, "UTC")))
        return pc.field(self.column).isin(self.values)


@dataclass(frozen=True)
class Between:
    column: str
    low: object
    high: object

    def sql(self, dialect: Dialect) -> str:
        return f'"{self.column}" BETWEEN {sql_value(self.low, dialect)} AND {sql_value(self.high, dialect)}'

    def polars(self) -> pl.Expr:
        return pl.col(self.column).is_between(polars_value(self.low), polars_value(self.high))

    def arrow(self) -> pc.Expression:
        column = pc.field(self.column)
        return (column >= arrow_value(self.low)) & (column <= arrow_value(self.high))


@dataclass(frozen=True)
class Null:
    column: str
    is_null: bool

    def sql(self, dialect: Dialect) -> str:
        del dialect
        return f'"{self.column}" IS {"" if self.is_null else "NOT "}NULL'

    def polars(self) -> pl.Expr:
        column = pl.col(self.column)
        return column.is_null() if self.is_null else column.is_not_null()

    def arrow(self) -> pc.Expression:
        column = pc.field(self.column)
        return column.is_null() if self.is_null else column.is_valid()


@dataclass(frozen=True)
class Property:
    name: str
    operator: Operator
    value: str

    def sql(self, dialect: Dialect) -> str:
        name = sql_value(self.name, dialect)
        return f'"properties"[{name}] {self.operator} {sql_value(self.value, dialect)}'

    def polars(self) -> pl.Expr:
        compared: pl.Expr = _COMPARE[self.operator](pl.col("properties").map.get(self.name), pl.lit(self.value))
        return compared

    def arrow(self) -> pc.Expression:
        options = pc.MapLookupOptions(pa.scalar(self.name), "first")
        entry = pc.Expression._call("map_lookup", [pc.field("properties")], options)  # noqa: SLF001
        return _COMPARE[self.operator](entry, pc.scalar(self.value))


@dataclass(frozen=True)
class BeginsWith:
    column: str
    text: str

    def sql(self, dialect: Dialect) -> str:
        return f'"{self.column}" LIKE {sql_value(self.text + "%", dialect)}'

    def polars(self) -> pl.Expr:
        return pl.col(self.column).str.starts_with(self.text)

    def arrow(self) -> pc.Expression:
        return pc.starts_with(pc.field(self.column), self.text)


@dataclass(frozen=True)
class Not:
    condition: Condition

    def sql(self, dialect: Dialect) -> str:
        return f"NOT ({self.condition.sql(dialect)})"

    def polars(self) -> pl.Expr:
        return ~self.condition.polars()

    def arrow(self) -> pc.Expression:
        return ~self.condition.arrow()


@dataclass(frozen=True)
class Joined:
    word: Literal["AND", "OR"]
    parts: list[Condition]

    def sql(self, dialect: Dialect) -> str:
        return f" {self.word} ".join(f"({part.sql(dialect)})" for part in self.parts)

    def polars(self) -> pl.Expr:
        return self._join([part.polars() for part in self.parts])  # type: ignore[no-any-return]

    def arrow(self) -> pc.Expression:
        return self._join([part.arrow() for part in self.parts])

    def _join(self, parts: list[Any]) -> Any:
        whole = parts[0]
        for part in parts[1:]:
            whole = (whole & part) if self.word == "AND" else (whole | part)
        return whole


@dataclass(frozen=True)
class Query:
    columns: list[str]
    condition: Condition | None
    limit: int | None = field(default=None)

    def sql(self, dialect: Dialect) -> str:
        where = "" if self.condition is None else f" WHERE {self.condition.sql(dialect)}"
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        columns = ", ".join('"' + name + '"' for name in self.columns)
        return f"SELECT {columns} FROM t{where}{limit}"  # noqa: S608 - a test's own values


class RandomQuery:
    """Makes queries whose values are mostly those of a table, so that conditions hold for some rows."""

    MOST_DEPTH = 4
    # the columns that narrow a scan are drawn more often
    NARROWING = ("tags", "queue_id", "queue_offset", "store_timestamp", "topic")

    def __init__(self, chance: random.Random, table: pa.Table) -> None:
        self._chance = chance
        self._values: dict[str, list[Any]] = {}
        for name in table.column_names:
            column = table[name]
            if pa.types.is_timestamp(column.type):
                values = [Instant(value, "ms") for value in column.cast(pa.int64()).to_pylist()]
            else:
                values = column.to_pylist()
            self._values[name] = values

    def query(self) -> Query:
        names = list(self._values)
        columns = self._chance.sample(names, self._chance.randint(1, 4))
        condition = self.condition(self._chance.randint(0, self.MOST_DEPTH)) if self._chance.random() < 0.95 else None
        limit = self._chance.choice([None] * 6 + [0, 1, 7, 1000])
        return Query(columns, condition, limit)

    def condition(self, depth: int) -> Condition:
        if depth == 0:
            return self._leaf()
        kind = self._chance.choice(["AND", "AND", "OR", "OR", "NOT", "leaf"])
        if kind == "leaf":
            return self._leaf()
        if kind == "NOT":
            return Not(self.condition(depth - 1))
        parts = [self.condition(self._chance.randint(0, depth - 1)) for _ in range(self._chance.randint(2, 3))]
        return Joined("AND" if kind == "AND" else "OR", parts)

    def _leaf(self) -> Condition:
        kinds = [self._comparison] * 6 + [self._one_of] * 2
        kinds += [self._between, self._null, self._property, self._begins_with, self._of_columns]
        return self._chance.choice(kinds)()

    def _comparison(self) -> Condition:
        chance, column = self._chance, self._column()
        operator: Operator = chance.choice(["=", "=", "=", "<>", "<", "<=", ">", ">="])
        value = self._value(column)
        if isinstance(value, int) and chance.random() < 0.05:
            value = value % 1000 + 0.5
        return Comparison(column, operator, value, chance.random() < 0.3)

    def _one_of(self) -> Condition:
        chance, column = self._chance, self._column()
        values = [value for _ in range(chance.randint(1, 12)) if (value := self._value(column)) is not None]
        # values of one type and unit
        values = [v for v in values if getattr(v, "unit", type(v)) == getattr(values[0], "unit", type(values[0]))]
        values += [None] * (chance.random() < 0.2)
        return OneOf(column, values) if values else Null(column, is_null=True)

    def _between(self) -> Condition:
        column = self._column()
        return Between(column, self._value(column), self._value(column))

    def _null(self) -> Condition:
        column = self._chance.choice([self._column(), "properties", "body"])
        return Null(column, self._chance.random() < 0.5)

    def _begins_with(self) -> Condition:
        column = self._chance.choice(["tags", "topic", "keys", "msg_id"])
        text = (self._some(column) or "")[: self._chance.randint(0, 3)]
        # a pattern of LIKE without its signs
        return BeginsWith(column, text.replace("%", "").replace("_", ""))

    def _column(self) -> str:
        if self._chance.random() < 0.7:
            return self._chance.choice(self.NARROWING)
        return self._chance.choice([name for name in self._values if name != "properties"])

    def _property(self) -> Condition:
        pairs = self._some("properties") or [("none", "x")]
        name, value = self._chance.choice(pairs)
        return Property(name, self._chance.choice(["=", "=", "<>", "<"]), value or "")

    def _of_columns(self) -> Condition:
        kinds: list[tuple[str, str]] = [
            ("topic", "tags"),
            ("queue_id", "queue_offset"),
            ("queue_offset", "physical_offset"),
            ("born_timestamp", "store_timestamp"),
            ("queue_id", "queue_id"),
            ("tags", "tags"),
        ]
        left, right = self._chance.choice(kinds)
        return OfColumns(left, self._chance.choice(["=", "<>", "<", ">="]), right)

    def _some(self, column: str) -> Any:
        values = self._values[column]
        return self._chance.choice(values) if values else None

    def _value(self, column: str) -> Any:
        """Returns a value of the column, one near it, or one at the edge of its type."""
        chance, value = self._chance, self._some(column)
        if column in {"born_timestamp", "store_timestamp"}:
            return self._instant(value)
        if column in {"topic", "broker_name", "msg_id", "offset_msg_id", "tags", "keys", "born_host", "store_host"}:
            return chance.choice([value] * 8 + ["", " ", "*", "none", "a|b", "a||b", f" {value}", f"{value}x", None])
        if column == "body":
            return chance.choice([value, value, b"", b"\x00\xff", (value or b"")[:3]])
        near = (value or 0) + chance.choice([0, 0, 0, 0, 1, -1, 5])
        edges = [0, -1, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63), (1 << 63) - 2, 1 << 31, None]
        return near if chance.random() < 0.8 else chance.choice(edges)

    def _instant(self, value: Instant | None) -> Instant | None:
        chance, millis = self._chance, 0 if value is None else value.count
        millis += chance.choice([0, 0, 0, 1, -1, 1000])
        if chance.random() < 0.1:
            # long ago, long ahead, and nothing
            return chance.choice(
                [
                    Instant(0, "ms"),
                    Instant(-1, "ms"),
                    Instant(-62_135_596_800, "s"),
                    Instant(250_000_000_000, "s"),
                    None,
                ]
            )
        unit = chance.choice(["s", "ms", "ms", "us", "ns"])
        if unit == "s":
            return Instant(millis // 1000, "s")
        if unit == "ms":
            return Instant(millis, "ms")
        if unit == "us":
            return Instant(millis * 1000 + chance.choice([0, 0, 1, 500, 999]), "us")
        return Instant(millis * 10**6 + chance.choice([0, 0, 1, 999, 1000, 999_999]), "ns")


#: Rows as an engine answers, in no order.
Rows = list[tuple[str, ...]]


def in_duckdb(given: Any, query: Query) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("t", given)
        return connection.sql(query.sql("duckdb")).to_arrow_table()


def in_datafusion(given: Any, query: Query) -> pa.Table:
    context = SessionContext()
    if isinstance(given, pa.Table):
        batches = given.to_batches() or [pa.RecordBatch.from_pylist([], given.schema)]
        context.register_record_batches("t", [batches])
    else:
        context.register_dataset("t", given)
    return context.sql(query.sql("datafusion")).to_arrow_table()


def in_pyarrow(given: Any, query: Query) -> pa.Table:
    if isinstance(given, pa.Table):
        given = pyarrow.dataset.dataset(given)
    condition = None if query.condition is None else query.condition.arrow()
    if query.limit is not None:
        return given.head(query.limit, columns=query.columns, filter=condition)
    return given.to_table(columns=query.columns, filter=condition)


def in_polars(given: pa.Table | pl.LazyFrame, query: Query) -> pa.Table:
    frame = pl.DataFrame(given).lazy() if isinstance(given, pa.Table) else given
    if query.condition is not None:
        frame = frame.filter(query.condition.polars())
    frame = frame.select(query.columns)
    return (frame if query.limit is None else frame.head(query.limit)).collect().to_arrow()


def rows_of(table: pa.Table) -> Rows:
    """Returns the values of each row as text, sorted."""
    columns: Sequence[list[Any]] = [column.to_pylist() for column in table.columns]
    return sorted(tuple(map(repr, row)) for row in zip(*columns, strict=True))
