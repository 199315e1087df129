"""The body of one message, decoded by a schema."""

from __future__ import annotations

import json
from typing import Any, Literal

from rmqfast.admin import Admin
from rmqfast.admin.pulls import TOOLS_GROUP
from rmqfast.client.instance import ClientConfig
from rmqfast.cluster import open_cluster
from rmqfast.errors import ArgumentError

#: Formats of bodies.
FORMATS: tuple[Literal["json", "avro"], ...] = ("json", "avro")


def decoded_text(admin: Admin, config: ClientConfig, message: Any, *, decode: str, schema: str) -> str:
    """Returns the decoded value of a body as JSON in lines.

    Raises:
        ArgumentError: The format or the schema is none.
        DecodeError: The body does not fit the schema.
        MissingExtraError: pyarrow is not installed.
    """
    wanted = next((each for each in FORMATS if each == decode), None)
    if wanted is None:
        raise ArgumentError(f"decode: expected {' or '.join(FORMATS)}, got {decode[:60]!r}")
    if wanted == "avro" and not schema.lstrip().startswith(("{", "[")):
        # Another text would be the path of a file, which is nobody's business here.
        raise ArgumentError(f"schema: expected an Avro schema in JSON, got {schema[:60]!r}")
    queue, offset = message.queue, message.queue_offset
    # Of all other queues, nothing is read: they begin at their ends.
    starts: dict[str, dict[int, int]] = {}
    for row in admin.topics.status(queue.topic):
        starts.setdefault(row.broker_name, {})[row.queue_id] = -1
    ends = {broker: dict(offsets) for broker, offsets in starts.items()}
    starts[queue.broker_name][queue.queue_id], ends[queue.broker_name][queue.queue_id] = offset, offset + 1
    # Under the group of administrators, so that brokers make none for it.
    found = open_cluster(config=config, group=TOOLS_GROUP).scan(
        queue.topic,
        start_offset=starts,
        end_offset=ends,
        columns=["value"],
        decode=wanted,
        schema=schema,
        on_error="fail",
    )
    (value,) = found.head(1).to_pydict()["value"]
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
