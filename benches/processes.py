"""Process families as /proc tells them: who descends from whom, what CPU time they took, ending them by their ids."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    """One process at one moment; the start time tells it from a later one with the same id."""

    pid: int
    parent: int
    cpu_seconds: float  # with those of ended children that it awaited
    started: int


def family(pid: int, *, with_ended: bool = False) -> list[Process]:
    """A process and its living descendants, parents first; with those that have ended and nobody awaited yet."""
    entries = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    everyone = [process for entry in entries if (process := read(entry, with_ended=with_ended))]
    found = [process for process in everyone if process.pid == pid]
    for process in found:  # grows while it runs
        found += [child for child in everyone if child.parent == process.pid]
    return found


def read(pid: int, *, with_ended: bool = False) -> Process | None:
    """The process of that id; None for one that has ended, awaited or not, unless those not awaited are wanted."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # the name, in parentheses, may hold blanks
    fields = stat.rpartition(")")[2].split()
    if fields[0] == "Z" and pid != os.getpid() and not with_ended:
        return None
    return Process(pid, int(fields[1]), sum(map(int, fields[11:15])) / TICK, int(fields[19]))


def process_seconds(pid: int) -> float:
    """CPU time of one process in nanosecond steps, where `read` has those of a tick: ten milliseconds.

    Raises:
        ProcessLookupError: It has ended.
    """
    try:
        # the clock of that process, as `clock_getcpuclockid` numbers it
        return time.clock_gettime((~pid << 3) | 2)
    except OSError as error:
        raise ProcessLookupError(pid) from error


def alive(process: Process) -> bool:
    """Whether the very process still runs."""
    now = read(process.pid)
    return now is not None and now.started == process.started


def stop(child: subprocess.Popen[Any], patience: float = 20.0) -> None:
    """Asks a child and its descendants to end, by id; kills what is left after so many seconds."""
    members = family(child.pid)
    if child.stdin is not None:
        with contextlib.suppress(BrokenPipeError):  # it was gone before it read the last request
            child.stdin.close()
    send(members, signal.SIGTERM)
    end = time.monotonic() + patience
    while any(map(alive, members)) and time.monotonic() < end:
        time.sleep(0.05)
    send(members, signal.SIGKILL)
    child.wait()


def send(members: list[Process], number: signal.Signals) -> None:
    """Sends a signal to those that still run."""
    for process in filter(alive, members):
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            continue  # it ended meanwhile


class CpuTime:
    """CPU seconds that this process and its descendants take from now on, with those that end and are awaited.

    Of a process whose parent ended before it, nobody has the seconds: they are lost, but are taken from nobody else's.
    """

    def __init__(self) -> None:
        self._before = family(os.getpid(), with_ended=True)

    @property
    def seconds(self) -> float:
        """So far."""
        now = {(one.pid, one.started): one for one in family(os.getpid(), with_ended=True)}
        parents = {pid for pid, _ in now}
        taken = sum(one.cpu_seconds for one in now.values())
        for one in self._before:
            # a parent has all seconds of a child that it awaited, those from before as well
            if (one.pid, one.started) in now or one.parent in parents:
                taken -= one.cpu_seconds
        return taken


def busy_seconds() -> float:
    """CPU seconds of the whole machine so far; what a hypervisor stole counts as busy."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICK


def anonymous_bytes(pid: int) -> int:
    """RssAnon of a process, in bytes; 0 for one that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    lines = [line for line in status.splitlines() if line.startswith("RssAnon:")]
    return int(lines[0].split()[1]) * 1024 if lines else 0


def connections(port: int) -> int:
    """The number of TCP connections of this machine to a port."""
    lines = (
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    )
    return sum(line[3] == "01" and int(line[2].rpartition(":")[2], 16) == port for line in lines)
