"""Bodies of JSON, good and hostile ones, and stores with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rmqfast
from tests.reference.writer import Message, Options, write_store

SCHEMA = (
    "id bigint, customer struct<id: string, age: int>, lines array<struct<sku: string, n: int>>, "
    "props map<string, double>"
)
GOOD = b'{"id": 7, "customer": {"id": "c"}, "lines": [{"sku": "a", "n": 1}], "props": {"x": 1.5}}'
VALUE = {"id": 7, "customer": {"id": "c", "age": None}, "lines": [{"sku": "a", "n": 1}], "props": [("x", 1.5)]}


def store_of(directory: Path, bodies: Sequence[bytes], **options: Any) -> rmqfast.MessageStore:
    messages = [Message("T", body, queue_id=n % 2, **options) for n, body in enumerate(bodies)]
    return rmqfast.open_store(write_store(directory, messages, Options(commitlog_file_size=1 << 17)).path)


HOSTILE = [
    b"",
    b" ",
    b"null",
    b"[]",
    b"1",
    b'"text"',
    GOOD + GOOD,
    GOOD + b"x",
    GOOD[:-1],
    b"{" * 100_000,
    b'{"a":' + b"[" * 100_000,
    b'{"lines":' + b"[" * 1000 + b"]" * 1000 + b"}",
    b'{"id":99999999999999999999}',
    b'{"id":1.5}',
    b'{"id":true}',
    b'{"customer":[]}',
    b'{"customer":{"age":2147483648}}',
    b'{"lines":{"sku":"a"}}',
    b'{"props":[]}',
    b'{"id":1,}',
    b'{"id" 1}',
    b'{"customer":{"id":"\xff"}}',
    b'{"customer":{"id":"\\ud800"}}',
    b'{"\xc3":1}',
    b"\x00\x00\x00\x00\x01{}",
    b"\xef\xbb\xbf{}",
]
