"""Opens the sources of ingests: a store, the stores of several brokers, or topics of a cluster."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from rmqfast._native import find_broker_stores, topics_like
from rmqfast.cluster import MessageCluster
from rmqfast.errors import ArgumentError
from rmqfast.paths import local_path
from rmqfast.store import MessageStore, MessageStores, ScanRequest, open_store, open_stores
from rmqfast.store.message_stores import open_one_or_several
from rmqfast.tables.cluster_topics import ClusterTopics
from rmqfast.tables.source import Source
from rmqfast.tables.store_logs import StoreLogs

#: What a message of a cluster counts as, in bytes.
MESSAGE_BYTES = 1 << 10

Stores = str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]] | MessageStore | MessageStores


@contextmanager
def open_source(
    source: Stores | MessageCluster,
    topics: Sequence[str] | None,
    request: ScanRequest,
    *,
    pattern: str | None,
    step_bytes: int,
    fails: bool,
) -> Iterator[Source]:
    """Yields the messages of a store, of the stores of several brokers, or of a cluster.

    `fails` is of lost messages.
    """
    with ExitStack() as stack:
        opened: Source
        if isinstance(source, MessageCluster):
            if request.end_time is not None:
                raise ArgumentError(
                    f"end_time: expected none for a cluster, whose end is the present, got {request.end_time}"
                )
            step_rows = max(step_bytes // MESSAGE_BYTES, 1)
            opened = ClusterTopics(source, topics, request, pattern=pattern, step_rows=step_rows, fails=fails)
        else:
            opened = _open_stores(source, topics, request, stack, pattern=pattern, step_bytes=step_bytes, fails=fails)
        stack.callback(opened.offsets.close)
        yield opened


def store_paths(source: Stores) -> list[Path]:
    """Returns the directories of the stores of a source, and the directory that has them."""
    if isinstance(source, MessageStore):
        return [source.path]
    if isinstance(source, MessageStores):
        return [store.path for store in source.stores.values()]
    if isinstance(source, Mapping):
        return [local_path(path, "source") for path in source.values()]
    return [Path(source), *(find_broker_stores(source) or {}).values()]


def _open_stores(
    source: Stores,
    topics: Sequence[str] | None,
    request: ScanRequest,
    stack: ExitStack,
    *,
    pattern: str | None,
    step_bytes: int,
    fails: bool,
) -> StoreLogs:
    topics_like(pattern or "", [])

    def open_later(name: str, path: str) -> MessageStore:
        return stack.enter_context(open_store(path, broker_name=name))

    opened: MessageStore | MessageStores
    options: dict[str, object]
    if isinstance(source, str | os.PathLike):
        opened = open_one_or_several(source)
        stack.enter_context(opened)
        options = {"storePath": os.fspath(source)}
    elif isinstance(source, MessageStore):
        opened = source
        options = {"storePath": str(source.path), "commitLogDirs": [str(each) for each in source.commit_log_dirs]}
    else:
        opened = source if isinstance(source, MessageStores) else stack.enter_context(open_stores(source))
        options = {"storePath": _paths_text(opened)}
    if isinstance(opened, MessageStore):
        stores = {"": opened}
        # raises an error for a topic that the store does not have
        opened.plan(request, cut_bytes=1 << 62)
    else:
        stores = dict(opened.stores)
        # raises an error for a topic that no store has
        opened.scan(topics, columns=[])
        if topics is not None:
            # not each broker has each topic, or has it already
            pattern, request = "|".join(map(re.escape, topics)), replace(request, topic=None, among=None)
    return StoreLogs(
        options, stores, request, open_store=open_later, pattern=pattern, step_bytes=step_bytes, fails=fails
    )


def _paths_text(stores: MessageStores) -> str:
    """Returns the paths of stores as the option `storePath`."""
    for name, store in stores.stores.items():
        if store.commit_log_dirs:
            got = ", ".join(map(str, store.commit_log_dirs))
            raise ArgumentError(f"source: expected stores with their commitlog/, got that of {name} in {got}")
    return json.dumps({name: os.path.abspath(store.path) for name, store in stores.stores.items()})  # noqa: PTH100  # links stay as they are
