"""Warns of a store in which groups have consumed messages, but `config/consumerOffset.json` is missing.

Source: RocketMQ's `ConfigManager`.
"""

from __future__ import annotations

import os

from rmqfast.errors import StoreError
from rmqfast.paths import exists, list_directory, local_path
from rmqfast.store.config.consumer_offsets import ConsumerOffsetTable
from rmqfast.store.config.groups import SubscriptionGroupTable, built_in_groups

RETRY_PREFIX = "%RETRY%"
SYSTEM_PREFIX = "CID_RMQ_SYS_"
MOST_NAMED = 10


def warning_of_lost_offsets(root: str | os.PathLike[str], *, is_kept: bool | None = None) -> str | None:
    """Returns a warning for a store with messages and groups but without offsets. None for any other store.

    A broker writes the file at its first save even without offsets. If the file is missing, somebody removed it or the
    broker was killed in its first seconds.
    """
    store = local_path(root, "root")
    path = store / "config" / ConsumerOffsetTable.FILE_NAME
    queues = store / "consumequeue"
    # rmqfast's broker keeps its offsets in metadata.db
    if exists(path.with_name("metadata.db")) if is_kept is None else is_kept:
        return None
    if exists(path) or exists(path.with_name(f"{path.name}.bak")):
        return None
    topics = [entry.name for entry in list_directory(queues)]
    # a retry topic proves that its group has consumed
    groups = _user_groups(root) | {name.removeprefix(RETRY_PREFIX) for name in topics if name.startswith(RETRY_PREFIX)}
    if not topics or not groups:
        return None
    names = ", ".join(sorted(groups)[:MOST_NAMED]) + (
        f" and {len(groups) - MOST_NAMED} more" if len(groups) > MOST_NAMED else ""
    )
    return (
        f"{path}: missing, and so is its .bak, but the store has messages and groups ({names}): each begins as a new "
        "group, and gets messages once more or misses some; put the file of a backup in its place before a broker "
        "starts, or set offsets with `rmqfast group reset`"
    )


def _user_groups(root: str | os.PathLike[str]) -> set[str]:
    try:
        names = set(SubscriptionGroupTable.load(root))
    except StoreError:
        return set()
    # RocketMQ's own groups may have no offsets
    own = {group.group_name for group in built_in_groups()}
    return {name for name in names - own if not name.startswith(SYSTEM_PREFIX)}
