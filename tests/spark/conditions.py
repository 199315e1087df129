"""Conditions on rows: those that a scan does exactly and those that stay Spark's, the same for every data source."""

from __future__ import annotations

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
PARTLY = (
    "tags IS NULL",
    "tags <> 'TagA' AND queue_id = 0",
    "tags = 'A || B'",
    "tags = '*'",
    "length(body) > 100 AND topic = 'fx_q1'",
    "keys IS NOT NULL AND tags LIKE 'Tag%'",
    "tags = 'TagA' OR queue_id = 3",
)
