"""Writes messages as JSON lines. Bodies are base64, and timestamps are milliseconds since 1970."""

from __future__ import annotations

import base64
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from math import isfinite
from typing import Any

from rmqfast.errors import DamageWarning, DecodeWarning
from rmqfast.extras import import_extra
from rmqfast.store.scan import Scan

# These are legal in JSON, but terminals obey C1 and bidirectional control codes, many line readers break at Unicode's
# line separators, and a lone surrogate is not UTF-8. Escaped, they decode to the same string.
HIDDEN = re.compile(
    "[\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e007f]"
)


def json_text(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=base64_text, separators=(",", ":"))
    # without the quotes of the JSON string
    return HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def base64_text(value: object) -> str:
    if not isinstance(value, bytes):
        raise TypeError(f"expected bytes, got {type(value).__name__}")
    return base64.b64encode(value).decode("ascii")


def json_lines(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    r"""Returns rows as JSON objects, one per line."""
    return "".join(json_text(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def plain_rows(scan: Scan) -> Iterator[list[tuple[object, ...]]]:
    """Yields each batch of a scan as rows of plain Python values. Timestamps are milliseconds; properties are dicts."""
    with warnings.catch_warnings():
        # the caller reports damage, and bodies that could not be decoded
        warnings.simplefilter("ignore", DamageWarning)
        warnings.simplefilter("ignore", DecodeWarning)
        # closed inside `catch_warnings`: closing warns of damage
        with closing(scan.batches()) as batches:
            for batch in batches:
                yield batch_rows(batch)


def batch_rows(batch: Any) -> list[tuple[object, ...]]:
    return list(zip(*map(_values, batch.columns), strict=True))


def _values(column: Any) -> list[object]:  # noqa: PLR0911 - a type each
    pa = import_extra("pyarrow", "arrow")
    kind = column.type
    # as numbers: a damaged record may have a time beyond the year 9999, the last one of Python's datetimes
    if pa.types.is_timestamp(kind):
        times: list[int | None] = column.view(pa.int64()).to_pylist()
        per_second = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}[kind.unit]
        return [None if time is None else time * 1000 // per_second for time in times]
    if pa.types.is_map(kind):
        # pyarrow returns maps as lists of pairs
        pairs = zip(_values(column.keys), _values(column.items), strict=True)
        return [None if size is None else dict(islice(pairs, size)) for size in _sizes(column)]
    if pa.types.is_struct(kind):
        rows = zip(*map(_values, column.flatten()), strict=True)
        names = [kind.field(at).name for at in range(kind.num_fields)]
        valid = column.is_valid().to_pylist()
        return [
            dict(zip(names, row, strict=True)) if is_valid else None for row, is_valid in zip(rows, valid, strict=True)
        ]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        items = iter(_values(column.flatten()))
        return [None if size is None else list(islice(items, size)) for size in _sizes(column)]
    if pa.types.is_floating(kind):
        # JSON has no infinity
        return [value if value is None or isfinite(value) else str(value) for value in column.to_pylist()]
    if pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_decimal(kind):
        return list(column.cast(pa.string()).to_pylist())
    values: list[object] = column.to_pylist()
    return values


def _sizes(column: Any) -> list[int | None]:
    """Returns the number of items of each list or map of a column. None for null."""
    offsets = column.offsets.to_pylist()
    valid = column.is_valid().to_pylist()
    return [
        end - start if is_valid else None for start, end, is_valid in zip(offsets[:-1], offsets[1:], valid, strict=True)
    ]
