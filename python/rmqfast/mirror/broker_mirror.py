"""Mirrors one broker: finds its log, follows it, and continues after each interruption."""

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
from rmqfast.remoting.tls import TlsOptions
from rmqfast.replication import FollowEnd, Following
from rmqfast.store.replica import Replica
from rmqfast.system import monotonic
from rmqfast.threads import new_event, new_thread

_log = logger_of(__name__)
#: Seconds between requests for the end of the master's log.
POLL = 1.0
#: Seconds between checks whether a copy with `once` has caught up.
LOOK = 0.02
#: Seconds between copies of the configuration, as with slaves of 4.9.4.
CONFIG_EVERY = 10.0
#: Seconds until the next connection attempt.
RETRY = 1.0
#: Seconds until the next attempt after a full disk.
RETRY_FULL = 5.0
#: Two different records differ within their first so many bytes: sizes, offsets, times.
HEAD = 128
#: Bytes before the copy's end that are compared with the log before the copy grows.
OVERLAP = 64 << 10
NOTHING_LEFT = "is it another broker, or one that lost its store? a slave of that begins with a new store"
#: Kinds of interruptions that do not cast doubt on the log.
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
    source: Source
    bounds: LogBounds
    #: Following starts at `start`; up to `end`, the copy's end, received bytes are compared with the copy.
    start: int
    end: int


class BrokerMirror:
    """A thread that keeps the copy of a broker's store up to date.

    Args:
        once: Stop when the copy has everything the log had when the mirror caught up.
        as_slave: Report positions to the master, as a slave does.
        tls: TLS of the HA port. A slave with TLS refuses a master without TLS.
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
        #: Kind and offset of the last end that a flipped bit on the wire could explain; only a repetition counts.
        self._suspicion: tuple[str, int | None] | None = None
        self._next_config = 0.0
        self._last_note = ""
        self._pruning = Pruning(client)
        self._has_followed = False
        self._thread = new_thread(self._run, name=f"rmqfast-mirror-{broker_name}")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stops following, writes all received bytes, and closes the store."""
        self._stopping.set()
        with self._lock:
            following = self._following
        if following is not None:
            following.stop()
        self._thread.join()

    def join(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds for the thread to end. Returns whether it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def status(self) -> MirrorStatus:
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
                if self._round_or_wait():
                    break
            self._show(MirrorState.STOPPED)
        except RmqError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001  # an unreported end would look like a finished mirror
            _log.exception("the mirror of %s ended", self.broker_name)
            self._fail(MirrorError(f"{type(error).__name__}: {error}", next_step="the log has where it came from"))
        finally:
            self._copy.close()

    def _fail(self, error: RmqError) -> None:
        self.error = error
        _log.error("the mirror of %s ended: %s", self.broker_name, error)
        self._show(MirrorState.FAILED, note=str(error).replace("\n", "; "))

    def _round_or_wait(self) -> bool:
        """Follows the log once. Waits after a failure that may be temporary. Returns whether the mirror has ended."""
        try:
            return self._round()
        except (RemotingError, ClientError) as error:
            return self._wait(RETRY, str(error))
        except StoreIOError as error:
            self._copy.close_failed()
            return self._wait(RETRY_FULL, str(error))

    def _round(self) -> bool:
        """Follows the log until the connection ends. Returns whether the mirror has ended."""
        source = self._find_source()
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
        # Asked again after copying the configuration, whose topics and offsets refer to messages before this end.
        bounds = log_bounds(self._client, source.address)
        return self._follow(_Attempt(source, bounds, start, replica.bounds[1]), replica)

    def _find_source(self) -> Source | None:
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
            # The followed slave may come back, and a master may restart with its old role.
            _log.warning("%s", error)
            return None
        return source

    def _check_tls(self, source: Source) -> None:
        if source.log.has_tls and self._tls is None:
            step = "haUseTLS=true" if self._as_slave else "--tls, and --tls-trust FILE"
            raise MirrorError(f"{source.address} serves its log with TLS alone (haUseTLS)", next_step=step)
        if self._as_slave and self._tls is not None and not source.log.has_tls:
            # A man in the middle could have removed the TLS flag, so refuse all data.
            raise MirrorError(
                f"haUseTLS: expected a master that serves its log with TLS, got {source.address}, which does not",
                next_step="set haUseTLS=true there, too; a master of RocketMQ has no TLS at its HA port",
            )

    def _start(self, source: Source, bounds: LogBounds, replica: Replica) -> int | None:
        """Returns the offset at which to continue. `None` if the copy was changed and the next round must try again."""
        begin, end = replica.bounds
        self._show(position=end, master_position=bounds.end)
        if bounds.begin > end == begin and replica.is_empty:
            # Reopen the empty copy at the present begin of the log.
            self._copy.close()
            return None
        if bounds.begin > end:
            reason = f"retention of {self.broker_name} removed its log up to {bounds.begin}; the copy ends at {end}"
            self._begin_anew(reason, "a larger fileReservedTime at the broker keeps it longer")
            return None
        if source.is_slave and bounds.end < end:
            # The slave lags behind the master that the copy followed before.
            self._wait(RETRY, f"the slave at {source.address} ends at {bounds.end}, the copy at {end}")
            return None
        if self._options.topics and bounds.end < end:
            # A copy of topics has no bytes to compare. The shorter log proves that the master lost messages.
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
        # A master that lost its tail ends before the copy, so compare from before the master's end.
        return max(bounds.begin, replica.compare_from(min(end, bounds.end), self._overlap))

    def _seconds_to_settle(self, source: Source, start: int) -> float:
        if self._as_slave or not source.waits_for_slaves:
            return 0.0
        slave_timeout = int(source.config.get("slaveTimeout", "3000")) / 1000
        return max(self._settled.safe_from(start, slave_timeout) - monotonic(), 0.0)

    def _follow(self, attempt: _Attempt, replica: Replica) -> bool:
        source = attempt.source
        address = source.log.addresses[self._addresses_tried % len(source.log.addresses)]
        try:
            following = self._start_following(attempt, replica, address)
        except CorruptError as error:
            # For a copy of topics: its log ends before the position in its mark.
            self._begin_anew(str(error))
            return False
        with self._lock:
            self._following = following
            self._progress.source = address
        try:
            end = self._follow_until_end(following, attempt, replica)
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
        return self._act_on_end(end, attempt, replica)

    def _start_following(self, attempt: _Attempt, replica: Replica, address: str) -> Following:
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

    def _follow_until_end(self, following: Following, attempt: _Attempt, replica: Replica) -> FollowEnd:
        """Waits until following ends, and returns why. Meanwhile requests the log's end, topics and configuration."""
        bounds, next_poll = attempt.bounds, monotonic() + POLL
        while True:
            progress = following.progress()
            is_compared = progress.is_compared
            if not is_compared and not attempt.source.is_slave and progress.compared_to >= bounds.end:
                # The master's whole log equals the copy's begin and is shorter. No flipped bit can cause that.
                self._suspicion = ("diverged", bounds.end)
                return FollowEnd("diverged", "", bounds.end)
            if bounds.begin > (progress.position if is_compared else progress.compared_to):
                # The master would only send keep-alives, so reconnect and find the start offset again.
                return FollowEnd("closed", f"retention of {self.broker_name} removed what comes next", None)
            is_there = is_compared and progress.listed_to >= bounds.end
            if is_compared:
                # Only now: another broker of the same name with an empty log must not replace the configuration.
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

    def _act_on_end(self, end: FollowEnd, attempt: _Attempt, replica: Replica) -> bool:
        """Reacts to the end of following: retries, cuts or restarts the copy. Returns whether the mirror has ended."""
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
        # A bit that flipped on the wire will not flip again, so read once more before acting.
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
        """Whether the copy already differs in the first record that was compared, and possibly before."""
        if end.kind != "diverged" or end.offset is None or self._options.topics:
            return False
        return end.offset < attempt.start + HEAD and attempt.start > max(begin, attempt.bounds.begin)

    def _lost_tail(self, source: Source, at: int, begin: int, position: int) -> None:
        """Called if the master has lost the end of its log. Cuts the copy, begins a new copy, or fails."""
        lost = f"{self.broker_name} lost the end of its log, and goes on with other messages"
        if self._options.topics:
            # The copy has a log of its own, whose positions do not tell how much the master lost.
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
        """Begins a new copy in another directory if `if_broken` is "anew". Otherwise raises `MirrorError`."""
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
        # Messages of a topic that is created later are stored after this position.
        known_to = log_bounds(self._client, source.master_address).end
        topics = self._config.update(
            source.master_address, self._copy.take, lambda: log_bounds(self._client, source.master_address).end
        )
        if topics is not None:
            self._pruning.topics_changed(known_to)

    def _wait(self, seconds: float, note: str) -> bool:
        # A mirror shows its note in its status; a slave has only the log.
        if self._as_slave and note != self._last_note:
            _log.warning("the slave of %s waits: %s", self.broker_name, note)
            self._last_note = note
        self._show(MirrorState.WAITING, note=note)
        return self._stopping.wait(seconds)

    def _show(self, state: MirrorState | None = None, **changes: int | str) -> None:
        with self._lock:
            if state is not None:
                changes["state"] = state
            for name, value in changes.items():
                setattr(self._progress, name, value)
