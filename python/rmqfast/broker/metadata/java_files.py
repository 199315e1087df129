"""Writes RocketMQ's metadata files, `config/*.json`, in the background.

Each file has the format of a RocketMQ 4.9 broker, which can therefore take over the store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from rmqfast._native import config_text, save_config
from rmqfast.broker.metadata.database import Database
from rmqfast.errors import RmqError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.store.metadata.file_digest import digest_of
from rmqfast.system import monotonic
from rmqfast.threads import new_condition, new_thread

_log = logger_of(__name__)
#: Largest share of the time for writing files; larger files are written less often.
_SHARE = 0.1
#: Seconds until a failed write is tried again.
_AFTER_AN_ERROR = 5.0


class JavaFiles:
    """A thread that writes RocketMQ's files after the metadata in them has changed."""

    def __init__(self, root: Path, database: Database, members: Mapping[str, str]) -> None:
        self._root = root
        self._database = database
        self._members = members
        self._changed = new_condition()
        self._behind: set[str] = set()
        self._is_stopped = False
        self._writing = QuietLock()
        self._thread = new_thread(self._run, name="rmqfast-java-files")
        self._thread.start()

    def note(self, files: Iterable[str]) -> None:
        """Marks files as outdated, so that the thread writes them."""
        with self._changed:
            self._behind.update(files)
            self._changed.notify_all()

    def write(self) -> None:
        """Writes the outdated files now. Failures are logged, and the files stay marked."""
        with self._writing:
            with self._changed:
                files, self._behind = self._behind, set()
            failed = {file for file in sorted(files) if not self._write(file)}
            with self._changed:
                self._behind |= failed

    def stop(self) -> None:
        """Writes the outdated files and ends the thread."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._thread.join()
        self.write()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._behind or self._is_stopped)
                if self._is_stopped:
                    return
            start = monotonic()
            self.write()
            # 50,000 topics take 0.6 s; without a pause, a write after each change would take all of the time.
            pause = (monotonic() - start) * (1 / _SHARE - 1)
            with self._changed:
                pause = max(pause, _AFTER_AN_ERROR if self._behind else 0.0)
                self._changed.wait_for(lambda: self._is_stopped, pause)

    def _write(self, file: str) -> bool:
        try:
            text = config_text(file, self._database.text(file, self._members[file]))
            digest = hashlib.sha256(text).hexdigest()
            # The file is up to date already.
            if digest == digest_of(self._root / "config" / file):
                return True
            # Noted first, so that the database recognizes the file as its own even after a kill.
            self._database.note_digest(file, digest)
            save_config(str(self._root), file, text)
            self._database.confirm_digest(file)
        except RmqError as error:
            _log.error("config/%s is not up to date, and is tried again: %s", file, error)
            return False
        return True
