"""Options of a read of topics, as `rust/spark` parses them. Scans of a cluster and Spark's reads share them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

from rmqfast._native import SparkOptions
from rmqfast.arguments import Duration, integer, seconds
from rmqfast.errors import ArgumentError, DataLossError
from rmqfast.store import ScanRequest

Via = Literal["pull", "log", "auto", "mirror"]
"""Ways in which messages come from brokers."""
ByBroker = Mapping[str, Mapping[int, int]]
TopicOffsets = ByBroker | Mapping[str, ByBroker] | Literal["earliest", "latest"]
"""A queue offset by broker and queue id, of several topics by topic, -1 for latest and -2 for earliest; or one word."""

#: Arguments of `MessageCluster.scan` by the options that errors of the extension name.
_ARGUMENTS: dict[str, str] = {
    **dict(SparkOptions.arguments("topic batch")),
    "startingOffsets": "start_offset",
    "endingOffsets": "end_offset",
    "retryTimeoutMs": "retry_timeout",
    "subscribe": "topic",
    # named beside its argument
    "failOnDataLoss": "failOnDataLoss",
}


def topic_options(
    topic: str | Sequence[str] | None,
    request: ScanRequest,
    *,
    start_offset: TopicOffsets,
    end_offset: TopicOffsets,
    fails_on_damage: bool,
    group: str,
    pull_batch_size: int,
    retry_timeout: Duration,
    via: Via,
    mirror_path: str | os.PathLike[str] | None,
) -> dict[str, Any]:
    """Returns the options of a read of topics, without those of the connection. None is every topic of users."""
    # JSON, so that a comma in a topic's name does not separate two topics.
    names = None if topic is None else json.dumps([topic] if isinstance(topic, str) else list(topic))
    return {
        "subscribe": names,
        "subscribePattern": ".*" if names is None else None,
        "group": group,
        # An empty expression means all tags, but an option cannot be empty.
        "tags": request.tags or "*",
        "sql": request.sql,
        "keys": request.keys,
        "propertyNames": request.property_names,
        "queueIds": request.queue_ids,
        "startingOffsets": _offsets(topic, start_offset),
        "endingOffsets": _offsets(topic, end_offset),
        "startingTimestamp": request.start_time,
        "endingTimestamp": request.end_time,
        "failOnDataLoss": fails_on_damage,
        "verifyCrc": request.verify_crc,
        "pullBatchSize": pull_batch_size,
        "retryTimeoutMs": round(seconds("retry_timeout", retry_timeout) * 1000),
        "via": via,
        "mirrorPath": None if mirror_path is None else os.fspath(mirror_path),
        "maxBodyBytes": request.max_body_bytes,
    }


def selects_nothing(request: ScanRequest) -> bool:
    """Whether an empty list selects no message. As an option it would mean all messages."""
    return () in {request.keys, request.queue_ids}


def option_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Formats arguments as options. Leaves out those without a value."""
    texts = ((name, option_text(value)) for name, value in values.items())
    return {name: text for name, text in texts if text is not None}


def option_text(value: Any) -> str | None:
    """Formats an argument as the value of an option. None for None, and for an empty string or list."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence) and not isinstance(value, str):
        are_numbers = all(isinstance(each, int) for each in value)
        # JSON, since a key may contain a comma.
        value = None if not value else ",".join(map(str, value)) if are_numbers else json.dumps(list(value))
    return None if value is None or not str(value).strip() else str(value)


def _offsets(topic: str | Sequence[str] | None, offsets: TopicOffsets) -> str:
    if isinstance(offsets, str):
        return offsets
    # NumPy integers are not JSON values.
    return json.dumps({topic: offsets} if isinstance(topic, str) else offsets, default=partial(integer, "offset"))


@contextmanager
def errors_name_arguments() -> Iterator[None]:
    """Makes errors about options name the arguments of `MessageCluster.scan`."""
    try:
        yield
    except (ArgumentError, DataLossError) as error:
        text = re.sub(r"\b(?:(?:the )?option )?([a-z]+[A-Z]\w*)|\b(?:the )?option (\w+)", _argument_of, str(error))
        error.args = (text, *error.args[1:])
        raise


def _argument_of(found: re.Match[str]) -> str:
    name: str = found[1] or found[2]
    return _ARGUMENTS.get(name, name)
