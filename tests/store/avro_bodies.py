"""A schema of Avro, a value of it and its encoding."""

from __future__ import annotations

import json
from typing import Any

from tests.reference.avro import encode

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "sku", "type": "string"}, {"name": "n", "type": "int"}],
                },
            },
        },
        {"name": "props", "type": {"type": "map", "values": "double"}},
    ],
}
VALUE: dict[str, Any] = {
    "id": 7,
    "note": None,
    "state": "PAID",
    "lines": [{"sku": "a", "n": 1}, {"sku": "é", "n": -2}],
    "props": {"x": 1.5},
}
ROW = VALUE | {"props": [("x", 1.5)]}
GOOD = encode(ORDER, VALUE)
TEXT = json.dumps(ORDER)
MAGIC = b"\xc3\x01"
