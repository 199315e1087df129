"""A scan as a LazyFrame of Polars. Polars hands over the columns, the predicate and the number of rows of a query.

Source: `polars.io.plugins.register_io_source`; the JSON of `Expr.meta.serialize`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl
from polars.io.plugins import register_io_source

from rmqfast.store.exit_gate import GATE

if TYPE_CHECKING:
    from rmqfast.store.scan import Scan

_KINDS = {"Eq": "=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PER_MICROSECOND = {"Milliseconds": 1000, "Microseconds": 1}

#: A tree of filters, as `implied_filters` of the extension has them; None is a condition that does not narrow a scan.
Predicate = tuple[str, list[Any]] | tuple[str, str, list[Any]] | None


def lazy_frame(scan: Scan) -> pl.LazyFrame:
    """Returns a LazyFrame that reads a scan anew for each query."""

    def read(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        names = scan.request.columns if with_columns is None else with_columns
        implied = None if predicate is None else predicate_of(predicate)
        # Polars gives a number of rows only without a predicate
        reading = scan.narrow(names, implied, limit=n_rows)
        frames = map(pl.DataFrame, reading.batches())
        yield from _pass_gate(frames if predicate is None else (frame.filter(predicate) for frame in frames))

    # pure: Polars reads it once for a query that uses it twice
    schema = pl.DataFrame(scan.schema.empty_table()).schema
    return register_io_source(read, schema=schema, is_pure=True)


def _pass_gate(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yields frames until the interpreter ends; Polars' threads may ask for more behind the last row of a query."""
    GATE.begin()
    try:
        while True:
            with GATE.call() as is_open:
                frame = next(frames, None) if is_open else None
            if frame is None:
                return
            yield frame
    finally:
        GATE.end()


def predicate_of(expression: pl.Expr) -> Predicate:
    """Returns what a scan understands of a predicate. Polars still applies the whole predicate."""
    try:
        return _node(json.loads(expression.meta.serialize(format="json")))
    except (pl.exceptions.ComputeError, ValueError, RecursionError):
        # an expression that holds Python code, or is too deep
        return None


def _node(node: Any) -> Predicate:
    match node:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            return "all", [_node(left), _node(right)]
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            return "any", [_node(left), _node(right)]
        case {"BinaryExpr": {"left": {"Column": column}, "op": op, "right": {"Literal": value}}} if op in _KINDS:
            return _KINDS[op], column, [_value(value)]
        case {"BinaryExpr": {"left": {"Literal": value}, "op": op, "right": {"Column": column}}} if op in _KINDS:
            return _FLIPPED[_KINDS[op]], column, [_value(value)]
        case {"Function": {"input": [{"Column": column}, *values], "function": {"Boolean": function}}}:
            return _function(function, column, values)
        case _:
            return None


def _function(function: Any, column: str, values: list[Any]) -> Predicate:
    match function, values:
        case "IsNull", []:
            return "null", column, []
        case "IsNotNull", []:
            return "not null", column, []
        case {"IsIn": {"nulls_equal": False}}, [{"Literal": {"Scalar": {"List": list() as data}}}]:
            return "in", column, _items(data)
        case {"IsBetween": {"closed": closed}}, [{"Literal": low}, {"Literal": high}]:
            first = ">=" if closed in {"Both", "Left"} else ">"
            last = "<=" if closed in {"Both", "Right"} else "<"
            return "all", [(first, column, [_value(low)]), (last, column, [_value(high)])]
        case _:
            return None


def _value(literal: Any) -> object:
    """Returns a value as `Selection` takes it: a string, a whole number, a time, or `()` for anything else."""
    match literal:
        case {"Scalar": {"String": str() as text}}:
            return text
        case {"Scalar": {"Datetime": [int() as number, unit, {"inner": "UTC"}]}} if unit in _PER_MICROSECOND:
            return (number * _PER_MICROSECOND[unit],)
        case {"Scalar": Mapping() as scalar} if len(scalar) == 1:
            [(kind, number)] = scalar.items()
            if kind in {"Int8", "Int16", "Int32", "Int64"} and isinstance(number, int):
                return number
    return ()


def _items(data: list[int]) -> list[object]:
    values = pl.read_ipc_stream(io.BytesIO(bytes(data))).to_series()
    if isinstance(values.dtype, pl.List):
        values = values.explode()
    if values.dtype == pl.String or values.dtype.is_signed_integer():
        return values.to_list()
    return [()]
