"""Conditions on rows and arguments of reads, the same for every engine and data source."""

from __future__ import annotations

from typing import Any

#: What a scan does exactly.
WHOLE = (
    "tags = 'TagA'",
    "tags IN ('Aa', 'BB', NULL)",
    "topic = 'fx_q4'",
    "topic = 'fx_q4' AND tags = 'Aa' AND queue_id IN (0, 2) AND queue_offset >= 5",
    "queue_id = 1 AND queue_offset BETWEEN 10 AND 20",
    "queue_offset < 7 AND queue_offset > 3",
    "queue_offset = 5",
    "queue_id = 1 AND queue_id = 2",
    "topic = 'no such topic'",
    "store_timestamp >= '2026-11-21 03:20:41.5' AND store_timestamp < '2026-11-21 03:20:45'",
    "store_timestamp > '2026-11-21 03:20:41.5003'",
    "physical_offset IS NOT NULL",
)
#: What stays Spark's.
PARTLY = (
    "tags IS NULL",
    "tags <> 'TagA' AND queue_id = 0",
    "tags = 'A || B'",
    "tags = '*'",
    "length(body) > 100 AND topic = 'fx_q1'",
    "keys IS NOT NULL AND tags LIKE 'Tag%'",
    "tags = 'TagA' OR queue_id = 3",
)
#: Arguments of `read_store` that choose some messages of the topic fx_q4 in basic-4.9.4.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "tags": {"tags": "Aa || BB"},
    "one tag": {"tags": "TagA"},
    "sql": {"sql": "a > 10 AND color IN ('red', 'green')"},
    "keys": {"keys": ["k22", "order-13"]},
    "queues": {"queue_ids": [0]},
    "offsets": {"start_offset": 20, "end_offset": 90},
    "offsets by queue": {"start_offset": {0: 10}, "end_offset": {0: 20}},
    "crc": {"verify_crc": True, "tags": "TagA"},
}
