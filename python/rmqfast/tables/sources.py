"""Opens the sources of ingests: a store, the stores of several brokers, or topics of a cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from rmqfast.cluster import MessageCluster
from rmqfast.errors import ArgumentError
from rmqfast.store import MessageStore, ScanRequest, open_store
from rmqfast.tables.cluster_topics import ClusterTopics
from rmqfast.tables.source import Source
from rmqfast.tables.store_log import StoreLog
from rmqfast.tables.store_logs import StoreLogs, stores_below

#: What a message of a cluster counts as, in bytes.
MESSAGE_BYTES = 1 << 10


@contextmanager
def open_source(
    source: str | os.PathLike[str] | MessageStore | MessageCluster,
    topics: Sequence[str] | None,
    request: ScanRequest,
    *,
    pattern: str | None,
    step_bytes: int,
    fails: bool,
) -> Iterator[Source]:
    """Yields the messages of a store, of all stores below a directory, or of a cluster. `fails` is of lost messages."""
    with ExitStack() as stack:
        of_stores = partial(StoreLog, pattern=pattern, step_bytes=step_bytes, fails=fails)
        opened: Source
        if isinstance(source, MessageCluster):
            if request.end_time is not None:
                raise ArgumentError(
                    f"end_time: expected none for a cluster, whose end is the present, got {request.end_time}"
                )
            step_rows = max(step_bytes // MESSAGE_BYTES, 1)
            opened = ClusterTopics(source, topics, request, pattern=pattern, step_rows=step_rows, fails=fails)
        elif isinstance(source, MessageStore):
            opened = of_stores(source, request)
        elif paths := stores_below(Path(source)):
            stores = {name: stack.enter_context(open_store(path, broker_name=name)) for name, path in paths.items()}
            opened = _open_logs(stores, topics, request, pattern=pattern, step_bytes=step_bytes, fails=fails)
        else:
            opened = of_stores(stack.enter_context(open_store(source)), request)
        stack.callback(opened.offsets.close)
        yield opened


def _open_logs(
    stores: Mapping[str, MessageStore],
    topics: Sequence[str] | None,
    request: ScanRequest,
    *,
    pattern: str | None,
    step_bytes: int,
    fails: bool,
) -> StoreLogs:
    if topics is not None:
        for topic in topics:
            if not any(topic in store.topics() for store in stores.values()):
                # raises the error of an unknown topic
                next(iter(stores.values())).scan(topic)
        # not each broker has each topic, or has it already
        pattern, request = "|".join(map(re.escape, topics)), replace(request, topic=None, among=None)
    logs = {}
    for name, store in stores.items():
        own = replace(request, broker_name=name)
        logs[name] = StoreLog(store, own, pattern=pattern, step_bytes=step_bytes, fails=fails)
    return StoreLogs(logs)
