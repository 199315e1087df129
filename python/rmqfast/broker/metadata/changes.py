"""Words for what changes where a table takes the place of another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["changes_told"]

_MOST_NAMED = 5


def changes_told(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> str:
    """Describes the differences of two tables: entries gone, new, with an earlier offset, or changed."""
    changed = [name for name in before.keys() & after.keys() if before[name] != after[name]]
    back = [name for name in changed if _went_back(before[name], after[name])]
    kinds = {
        "gone": before.keys() - after.keys(),
        "with an earlier offset": back,
        "different": set(changed) - set(back),
        "new": after.keys() - before.keys(),
    }
    return "; ".join(f"{words}: {_list(names)}" for words, names in kinds.items() if names)


def _went_back(old: Any, new: Any) -> bool:
    if isinstance(old, int):
        return bool(new < old)
    if isinstance(old, Mapping) and all(isinstance(queue_id, int) for queue_id in old):
        return any(new.get(queue_id, -1) < offset for queue_id, offset in old.items())
    return False


def _list(names: Collection[Any]) -> str:
    texts = sorted(map(str, names))
    more = len(texts) - _MOST_NAMED
    return ", ".join(texts[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
