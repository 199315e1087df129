"""A record as one row: the column names that every reader of the package hands out, in their order."""

from __future__ import annotations

from typing import Any

from .record import Record

COLUMNS = (
    "topic",
    "broker_name",
    "queue_id",
    "queue_offset",
    "physical_offset",
    "msg_id",
    "offset_msg_id",
    "tags",
    "keys",
    "body",
    "properties",
    "born_timestamp",
    "store_timestamp",
    "born_host",
    "store_host",
    "flag",
    "sys_flag",
    "reconsume_times",
    "prepared_transaction_offset",
    "store_size",
    "body_crc",
)

Row = dict[str, Any]


def row_of(record: Record) -> Row:
    """Timestamps are integers, in milliseconds since 1970 UTC; `properties` is a dict."""
    return {
        "topic": record.topic,
        "broker_name": None,
        "queue_id": record.queue_id,
        "queue_offset": record.queue_offset,
        "physical_offset": record.physical_offset,
        "msg_id": record.msg_id,
        "offset_msg_id": record.offset_msg_id,
        "tags": record.tags,
        "keys": record.keys,
        "body": record.plain_body,
        "properties": record.properties,
        "born_timestamp": record.born_timestamp,
        "store_timestamp": record.store_timestamp,
        "born_host": str(record.born_host),
        "store_host": str(record.store_host),
        "flag": record.flag,
        "sys_flag": record.sys_flag,
        "reconsume_times": record.reconsume_times,
        "prepared_transaction_offset": record.prepared_transaction_offset,
        "store_size": record.store_size,
        "body_crc": record.body_crc,
    }
