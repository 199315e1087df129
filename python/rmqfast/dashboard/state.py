"""Holds the last look at a cluster, its alarms, and the last diagnosis of the doctor."""

from __future__ import annotations

from typing import Final

from rmqfast.admin import Admin
from rmqfast.client.instance import ClientConfig
from rmqfast.dashboard.history import History
from rmqfast.dashboard.look import Look
from rmqfast.doctor import AlarmMonitor, Diagnosis, examine_cluster
from rmqfast.doctor.examination import Examination
from rmqfast.errors import ClientError
from rmqfast.system import monotonic
from rmqfast.threads import new_lock

#: Seconds for which a diagnosis is shown again.
_DIAGNOSIS_AGE = 30.0


class ClusterState:
    """Looks at a cluster in the background. Pages show the last look, and never wait for it."""

    def __init__(self, config: ClientConfig, *, interval: float) -> None:
        self.config: Final[ClientConfig] = config
        self.monitor: Final[AlarmMonitor] = AlarmMonitor(config, interval=interval, on_look=self._take)
        self.admin: Final[Admin] = Admin(config=config)
        self.history: Final[History] = History()
        self._lock = new_lock()
        self._look: Look | None = None
        self._diagnosis: Diagnosis | None = None
        self._diagnosed_at = 0.0

    def start(self) -> None:
        """Takes the first look. Raises `RmqError` if no name server answers."""
        self.monitor.start()
        try:
            self.admin.start()
        except BaseException:
            self.monitor.stop()
            raise

    def stop(self) -> None:
        self.admin.shutdown()
        self.monitor.stop()

    @property
    def look(self) -> Look:
        """The last look."""
        if self._look is None:
            raise ClientError("the cluster was not looked at yet", next_step="start the dashboard first")
        # A look that failed leaves the one before, and says why.
        self._look.unknown = self.monitor.problems
        return self._look

    @property
    def age(self) -> float:
        """Seconds since the last look."""
        return self.monitor.age

    def _take(self, examination: Examination) -> None:
        """Makes the rows of a look, so that no page waits for them."""
        look = Look(examination, self.monitor.alarms, self.monitor.problems)
        self.history.note(examination.now / 1000, look.figures())
        self._look = look

    def diagnosis(self) -> Diagnosis:
        """Returns what the doctor finds: of half a minute ago at most, as it asks each broker."""
        with self._lock:
            if self._diagnosis is None or monotonic() - self._diagnosed_at > _DIAGNOSIS_AGE:
                self._diagnosis, self._diagnosed_at = examine_cluster(config=self.config), monotonic()
            return self._diagnosis
