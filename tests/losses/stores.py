"""Stores: files of the log, the queues, the index, the configuration are harmed, then read and appended to."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

from .attempt import Attempt, SilentLoss
from .harmed_store import HarmedStore
from .store_harms import harm
from .store_readers import Readers
from .store_writer import append_and_judge
from .true_stores import TrueStores

__all__ = ["Stores"]

#: Small ones, in which a harm hits something, come more often.
_WEIGHT_OF_SMALL = 6


class Stores:
    """Small stores in many states, and stores of real brokers."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="losses-true-stores-"))
        self._stores = TrueStores(self._directory)

    def attempt(self, chance: random.Random, directory: Path) -> Attempt:
        """Harms one store, one to three times, reads it by some faces, and appends to it."""
        names = self._stores.names
        weights = [1 if name[0] in "bcd" and "-" in name else _WEIGHT_OF_SMALL for name in names]
        true = self._stores.store(chance.choices(names, weights)[0])
        path = directory / "store"
        true.copy(path)
        records = list(true.rows)
        harms = [harm(chance, path, records) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
        text = f"{true.name}: {'; '.join(harms)}"
        harmed = HarmedStore(true, path)
        readers = Readers(harmed, text, chance, directory)
        try:
            readers.read()
            appended = append_and_judge(harmed, text, readers.readable)
        except SilentLoss:
            raise
        except Exception as error:
            error.add_note(text)
            raise
        return Attempt(text, readers.rows, readers.missing, readers.refused or not appended)

    def close(self) -> None:
        """Removes the stores."""
        shutil.rmtree(self._directory)
