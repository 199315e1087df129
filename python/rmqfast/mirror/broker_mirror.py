"""Mirrors one broker: finds its log, follows it, and goes on after whatever ends that."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace

from rmqfast.admin.admin_client import AdminClient
from rmqfast.errors import ClientError, CorruptError, MirrorError, RemotingError, RmqError, StoreIOError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.mirror.config_copy import ConfigCopy
from rmqfast.mirror.copy_directory import CopyDirectory
from rmqfast.mirror.options import MirrorOptions
from rmqfast.mirror.pruning import Pruning
from rmqfast.mirror.settled import SettledEnds
from rmqfast.mirror.source import LogBounds, Source, find_source, log_bounds
from rmqfast.mirror.status import MirrorState, MirrorStatus
from rmqfast.remoting.tls_options import TlsOptions
from rmqfast.replication import FollowEnd, Following
from rmqfast.store.replica import Replica
from rmqfast.system import monotonic
from rmqfast.threads import new_event, new_thread

__all__ = ["BrokerMirror"]

_log = logger_of(__name__)
#: How often the master is asked where its log ends.
POLL = 1.0
#: How often it is looked whether a copy that is to end has caught up.
LOOK = 0.02
#: How often its configuration is copied: the rhythm of slaves of 4.9.4.
CONFIG_EVERY = 10.0
#: Seconds until a connection is tried again.
RETRY = 1.0
#: Until a disk that was full is.
RETRY_FULL = 5.0
#: Of two records that differ the first bytes do: sizes, offsets, times.
HEAD = 128
#: How much of the copy is compared with the log when it goes on.
OVERLAP = 64 << 10
#: What to do about a master that has nothing of a slave's copy.
NOTHING_LEFT = "is it another broker, or one that lost its store? a slave of that begins with a new store"
#: Ends after which the next connection is as good.
PASSING = frozenset({"connect", "closed", "silent", "stalled", "frame"})


@dataclass
class _Progress:
    state: MirrorState = MirrorState.WAITING
    source: str = ""
    position: int = 0
    master_position: int = 0
    last_store_timestamp: int = 0
    withdrawn_bytes: int = 0
    note: str = ""


@dataclass
class _Attempt:
    """What one connection is to bring."""

    source: Source
    bounds: LogBounds
    #: Where the log is asked for from, and where the copy ended then: between them both are compared.
    start: int
    end: int


class BrokerMirror:
    """A thread that keeps a directory a copy of a broker's store.

    Args:
        client: Asks name server and brokers.
        broker_name: The broker.
        copy: The store to copy it to.
        options: How.
        once: End where the log ended when the mirror caught up with it.
        as_slave: Report what the copy has, as a slave does.
        tls: Who this side is, and who is trusted, where the log is served with TLS. A slave that has it takes no other.
    """

    def __init__(
        self,
        client: AdminClient,
        broker_name: str,
        copy: CopyDirectory,
        options: MirrorOptions,
        *,
        once: bool = False,
        as_slave: bool = False,
        tls: TlsOptions | None = None,
    ) -> None:
        self.broker_name = broker_name
        self._copy, self._as_slave, self._tls = copy, as_slave, tls
        self.error: RmqError | None = None
        self._client, self._options, self._once = client, options, once
        self._config = ConfigCopy(client)
        self._settled = SettledEnds()
        self._lock = QuietLock()
        self._progress = _Progress()
        self._stopping = new_event()
        self._following: Following | None = None
        self._addresses_tried = 0
        self._overlap = OVERLAP
        #: Kind and offset of an end that a flipped bit makes, too: it counts if it comes twice.
        self._suspicion: tuple[str, int | None] | None = None
        self._next_config = 0.0
        self._told = ""
        self._pruning = Pruning(client)
        self._has_followed = False
        self._thread = new_thread(self._run, name=f"rmqfast-mirror-{broker_name}")

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it; what was read is written, and the store is closed."""
        self._stopping.set()
        with self._lock:
            following = self._following
        if following is not None:
            following.stop()
        self._thread.join()

    def join(self, timeout: float) -> bool:
        """Waits until it ended, as with `once` or a failure; whether it did."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def status(self) -> MirrorStatus:
        """How far it is."""
        with self._lock:
            progress, following = replace(self._progress), self._following
        if following is not None:
            done = following.progress()
            progress.position = done.listed_to
            progress.last_store_timestamp = done.last_store_timestamp or progress.last_store_timestamp
        lag = max(progress.master_position - progress.position, 0)
        behind = time.time() - progress.last_store_timestamp / 1000 if lag and progress.last_store_timestamp else 0.0
        return MirrorStatus(
            broker_name=self.broker_name,
            directory=self._copy.path,
            state=progress.state,
            source=progress.source,
            position=progress.position,
            master_position=progress.master_position,
            lag_bytes=lag,
            lag_seconds=max(behind, 0.0),
            last_store_timestamp=progress.last_store_timestamp,
            withdrawn_bytes=progress.withdrawn_bytes,
            note=progress.note,
        )

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._tried():
                    break
            self._show(MirrorState.STOPPED)
        except RmqError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - a thread that ends in silence would be taken for one that is done
            _log.exception("the mirror of %s ended", self.broker_name)
            self._fail(MirrorError(f"{type(error).__name__}: {error}", next_step="the log has where it came from"))
        finally:
            self._copy.close()

    def _fail(self, error: RmqError) -> None:
        self.error = error
        _log.error("the mirror of %s ended: %s", self.broker_name, error)
        self._show(MirrorState.FAILED, note=str(error).replace("\n", "; "))

    def _tried(self) -> bool:
        """A round; whether the mirror is done. What may be better in a moment is waited for."""
        try:
            return self._round()
        except (RemotingError, ClientError) as error:
            return self._wait(RETRY, str(error))
        except StoreIOError as error:
            self._copy.close_failed()
            return self._wait(RETRY_FULL, str(error))

    def _round(self) -> bool:
        """Follows over one connection; whether the mirror is done."""
        source = self._found_source()
        if source is None:
            return self._wait(RETRY, f"nobody has a log of {self.broker_name} that may be followed")
        bounds = log_bounds(self._client, source.address)
        self._settled.note(bounds)
        replica = self._copy.open(self._client, source, bounds)
        start = self._start(source, bounds, replica)
        if start is None:
            return False
        wait = self._seconds_to_settle(source, start)
        if wait > 0:
            return self._wait(min(wait, POLL), f"begins in {wait:.0f} s, so that it ends no send that waits")
        if not self._as_slave:
            self._copy_config(source)
        # asked again: what the configuration speaks of stands before this
        bounds = log_bounds(self._client, source.address)
        return self._follow(_Attempt(source, bounds, start, replica.bounds[1]), replica)

    def _found_source(self) -> Source | None:
        try:
            source = find_source(
                self._client,
                self.broker_name,
                let_sends_time_out=self._options.let_sends_time_out,
                as_slave=self._as_slave,
            )
            if source is not None:
                self._check_tls(source)
        except MirrorError as error:
            if not self._has_followed:
                raise
            # the slave that was followed may come back, and a master may be started again as it was
            _log.warning("%s", error)
            return None
        return source

    def _check_tls(self, source: Source) -> None:
        if source.log.has_tls and self._tls is None:
            step = "haUseTLS=true" if self._as_slave else "--tls, and --tls-trust FILE"
            raise MirrorError(f"{source.address} serves its log with TLS alone (haUseTLS)", next_step=step)
        if self._as_slave and self._tls is not None and not source.log.has_tls:
            # whoever stands in between could have said so: nothing comes from there
            raise MirrorError(
                f"haUseTLS: expected a master that serves its log with TLS, got {source.address}, which does not",
                next_step="set haUseTLS=true there, too; a master of RocketMQ has no TLS at its HA port",
            )

    def _start(self, source: Source, bounds: LogBounds, replica: Replica) -> int | None:
        """Where to go on; None where the copy was changed, and is looked at anew."""
        begin, end = replica.bounds
        self._show(position=end, master_position=bounds.end)
        if bounds.begin > end == begin and replica.is_empty:
            # it is empty, and begins where the log does now
            self._copy.close()
            return None
        if bounds.begin > end:
            reason = f"retention of {self.broker_name} removed its log up to {bounds.begin}; the copy ends at {end}"
            self._begin_anew(reason, "a larger fileReservedTime at the broker keeps it longer")
            return None
        if source.is_slave and bounds.end < end:
            # it is behind its master, which was followed before
            self._wait(RETRY, f"the slave at {source.address} ends at {bounds.end}, the copy at {end}")
            return None
        if self._options.topics and bounds.end < end:
            # there is nothing to compare: it had what the copy took, and has it no more
            self._lost_tail(source, bounds.end, begin, end)
            return None
        if self._as_slave and bounds.end <= begin < end:
            raise MirrorError(
                f"the log of {self.broker_name} ends at {bounds.end}, and has nothing of the copy, {begin} to {end}",
                next_step=NOTHING_LEFT,
            )
        if bounds.end < begin:
            reason = f"the log of {self.broker_name} ends at {bounds.end}; the copy begins at {begin}"
            self._begin_anew(reason, "the broker has lost its log")
            return None
        # one that lost its tail ends before the copy, and is compared before that end
        return max(bounds.begin, replica.compare_from(min(end, bounds.end), self._overlap))

    def _seconds_to_settle(self, source: Source, start: int) -> float:
        if self._as_slave or not source.waits_for_slaves:
            return 0.0
        slave_timeout = int(source.config.get("slaveTimeout", "3000")) / 1000
        return max(self._settled.settled_by(start, slave_timeout) - monotonic(), 0.0)

    def _follow(self, attempt: _Attempt, replica: Replica) -> bool:
        """Follows until that ends; whether the mirror is done."""
        source = attempt.source
        address = source.log.addresses[self._addresses_tried % len(source.log.addresses)]
        try:
            following = self._begun(attempt, replica, address)
        except CorruptError as error:
            # of a copy of topics: its log ends before the place that its mark has
            self._begin_anew(str(error))
            return False
        with self._lock:
            self._following = following
            self._progress.source = address
        try:
            end = self._watched(following, attempt, replica)
        finally:
            following.stop()
            with self._lock:
                progress = following.progress()
                self._has_followed |= progress.position > attempt.end or progress.compared_to > attempt.start
                self._progress.position = progress.position
                self._progress.last_store_timestamp = (
                    progress.last_store_timestamp or self._progress.last_store_timestamp
                )
                self._following = None
                self._progress.source = ""
        return self._handled(end, attempt, replica)

    def _begun(self, attempt: _Attempt, replica: Replica, address: str) -> Following:
        source, size = attempt.source, attempt.source.log.file_size
        return Following(
            replica,
            address,
            attempt.start,
            max_record=self._options.max_record,
            cold_rate=self._options.cold_rate,
            cold_before=max(attempt.bounds.end // size - 1, 0) * size,
            counts=self._as_slave,
            tls=self._tls if source.log.has_tls else None,
        )

    def _watched(self, following: Following, attempt: _Attempt, replica: Replica) -> FollowEnd:
        """Waits until following ends, and looks at the master meanwhile."""
        bounds, next_poll = attempt.bounds, monotonic() + POLL
        while True:
            progress = following.progress()
            is_compared = progress.is_compared
            if not is_compared and not attempt.source.is_slave and progress.compared_to >= bounds.end:
                # all that the master has is the same, and it has less: so it says itself, and need not say it twice
                self._suspicion = ("diverged", bounds.end)
                return FollowEnd("diverged", "", bounds.end)
            if bounds.begin > (progress.position if is_compared else progress.compared_to):
                # it sends keep-alives for ever; where to go on is found out anew
                return FollowEnd("closed", f"retention of {self.broker_name} removed what comes next", None)
            is_there = is_compared and progress.listed_to >= bounds.end
            if is_compared:
                # not before: the broker of a slave's master's name may be another one, with an empty log
                with suppress(RemotingError, ClientError):
                    self._copy_config(attempt.source)
                self._config.give_held(progress.listed_to, self._copy.take)
            self._show(MirrorState.FOLLOWING if is_there else MirrorState.CATCHING_UP, note="")
            if is_there and self._once:
                return FollowEnd("stopped", "", None)
            end = following.wait(LOOK if self._once else max(next_poll - monotonic(), 0.0))
            if end is not None or self._stopping.is_set():
                return end or FollowEnd("stopped", "", None)
            if monotonic() < next_poll:
                continue
            next_poll = monotonic() + POLL
            with suppress(RemotingError, ClientError):
                bounds = log_bounds(self._client, attempt.source.address)
                self._settled.note(bounds)
                self._show(master_position=bounds.end)
                if is_compared:
                    self._pruning.look(attempt.source.master_address, replica, progress.listed_to)

    def _handled(self, end: FollowEnd, attempt: _Attempt, replica: Replica) -> bool:
        """What follows from an end; whether the mirror is done."""
        if end.kind == "stopped":
            return True
        _log.warning("the log of %s: %s", self.broker_name, end.text or end.kind)
        if end.kind in PASSING:
            self._addresses_tried += end.kind == "connect"
            return self._wait(RETRY, end.text)
        if end.kind in ("full", "store"):
            self._copy.close_failed()
            return self._wait(RETRY_FULL, end.text)
        begin, position = replica.bounds
        if self._begins_to_differ_before(end, attempt, begin):
            self._overlap *= 16
            return False
        # a bit that flipped on the way does not come again
        suspicion, self._suspicion = self._suspicion, (end.kind, end.offset)
        if suspicion != self._suspicion:
            return self._wait(RETRY, f"{end.text}; it is read once more")
        if end.kind == "broken" or end.offset is None:
            raise MirrorError(
                f"{self.broker_name}: {end.text}", next_step="its own log is damaged there: look at the master's disk"
            )
        self._overlap = OVERLAP
        self._lost_tail(attempt.source, end.offset, begin, position)
        return False

    def _begins_to_differ_before(self, end: FollowEnd, attempt: _Attempt, begin: int) -> bool:
        """Whether the first record that was compared differs, and there are others before it."""
        if end.kind != "diverged" or end.offset is None or self._options.topics:
            return False
        return end.offset < attempt.start + HEAD and attempt.start > max(begin, attempt.bounds.begin)

    def _lost_tail(self, source: Source, at: int, begin: int, position: int) -> None:
        """Cuts what the master has lost, or does what else was asked for."""
        lost = f"{self.broker_name} lost the end of its log, and goes on with other messages"
        if self._options.topics:
            # of a log of its own nobody knows how much that is
            self._begin_anew(f"{lost} behind {at}; the copy may have some that the master has not")
            return
        reason = f"{lost} from {at} on; the copy has {position - at} bytes that the master has not"
        if self._as_slave and at < begin + HEAD:
            raise MirrorError(f"{reason}: all of it", next_step=NOTHING_LEFT)
        if self._options.if_broken != "withdraw":
            self._begin_anew(reason, "--if-broken withdraw removes them from the copy, and goes on")
            return
        end = self._copy.cut(source, at)
        self._pruning.was_cut()
        _log.warning("%s; they are withdrawn: the copy ends at %d now", reason, end)
        with self._lock:
            self._progress.withdrawn_bytes += position - end
            self._progress.position = end

    def _begin_anew(self, reason: str, step: str = "") -> None:
        """Goes on in a new directory, if that was asked for.

        Raises:
            MirrorError: It was not.
        """
        if self._options.if_broken != "anew":
            anew = f"--if-broken anew begins a new directory beside {self._copy.path}"
            raise MirrorError(reason, next_step=f"{step}; {anew}" if step else anew)
        with self._lock:
            self._copy.begin_anew()
            self._progress = _Progress(note=reason)
        self._config, self._next_config, self._pruning = ConfigCopy(self._client), 0.0, Pruning(self._client)
        _log.warning("%s; a new mirror begins in %s", reason, self._copy.path)

    def _copy_config(self, source: Source) -> None:
        if monotonic() < self._next_config:
            return
        self._next_config = monotonic() + CONFIG_EVERY
        # the messages of a topic that is made later stand behind this
        known_to = log_bounds(self._client, source.master_address).end
        topics = self._config.update(
            source.master_address, self._copy.take, lambda: log_bounds(self._client, source.master_address).end
        )
        if topics is not None:
            self._pruning.topics_changed(known_to)

    def _wait(self, seconds: float, note: str) -> bool:
        # nobody looks at the status of a slave; a mirror shows it
        if self._as_slave and note != self._told:
            _log.warning("the slave of %s waits: %s", self.broker_name, note)
            self._told = note
        self._show(MirrorState.WAITING, note=note)
        return self._stopping.wait(seconds)

    def _show(self, state: MirrorState | None = None, **changes: int | str) -> None:
        with self._lock:
            if state is not None:
                changes["state"] = state
            for name, value in changes.items():
                setattr(self._progress, name, value)
