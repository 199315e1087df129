"""Messages of which a key begins so."""

from __future__ import annotations

from typing import Any

import pytest

from rmqfast import MessageStore, open_store
from tests.golden_stores import PathOf


def rows(store: MessageStore, **wanted: Any) -> list[dict[str, Any]]:
    return [row for batch in store.scan(**wanted).batches() for row in batch.to_pylist()]


def words(row: dict[str, Any]) -> list[str]:
    """The keys of a message, its UNIQ_KEY among them."""
    unique = dict(row["properties"] or []).get("UNIQ_KEY")
    return [*(() if row["keys"] is None else row["keys"].split(" ")), *(() if unique is None else [unique])]


@pytest.mark.parametrize("length", [0, 1, 3, 100])
def test_a_prefix_of_keys_takes_what_a_slow_look_takes(golden_store: PathOf, length: int) -> None:
    with open_store(golden_store("basic-4.9.4")) as store:
        every = rows(store)
        prefixes = {word[:length] for row in every for word in words(row)} | {"no such key"}
        for prefix in sorted(prefixes)[:20]:
            expected = [row for row in every if any(word.startswith(prefix) for word in words(row))]
            assert rows(store, keys_prefix=prefix) == expected
            assert bool(expected) == (prefix != "no such key")
