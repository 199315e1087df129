"""Examines a store and the machine that it is on, and tells what is wrong with them.

Source: RocketMQ's `os.sh` (limits of the system), `DefaultMessageStore`, `StoreCheckpoint`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from rmqfast.arguments import suggests_names
from rmqfast.broker.queries.runtime_info_processor import used_ratio
from rmqfast.doctor.finding import Diagnosis, Finding, Level
from rmqfast.store import VerifyReport, open_store
from rmqfast.system import memory_maps_limit, open_files_limit

#: Parts of a disk from which on a broker deletes files before their time, and refuses messages.
_DELETES, _REFUSES = 0.75, 0.90
_DAMAGE_SHOWN = 10


@suggests_names
def examine_store(
    path: str | os.PathLike[str], *, crc: bool = True, progress: Callable[[int, int], object] | None = None
) -> Diagnosis:
    """Returns what is wrong with a store: damage, a crash, a full disk, limits of the system that its files exceed.

    Args:
        path: The store's directory.
        crc: Whether to check the CRC of every body.
        progress: Called about every 64 MiB with bytes done and total bytes.

    Raises:
        StoreError: The store cannot be read.

    Example:
        >>> from rmqfast.doctor import examine_store
        >>> diagnosis = examine_store(getfixture("golden_store")("basic-4.9.4"))
        >>> [finding.name for finding in diagnosis.findings if finding.name.startswith("store-")]
        []
    """
    with open_store(path) as store:
        report, directory = store.verify(crc=crc, progress=progress), Path(store.path)
    findings = [*_damage(report, directory), *_disk(directory), *_limits(directory)]
    return Diagnosis.of(f"store {directory}", findings)


def _damage(report: VerifyReport, path: Path) -> Iterator[Finding]:
    subject = f"store {path}"
    for damage in report.damage[:_DAMAGE_SHOWN]:
        yield Finding(
            name="store-damaged",
            subject=subject,
            evidence=f"{damage.file} offset {damage.offset}: {damage.reason}",
            next_step="start its broker, which writes it anew from what it read instead"
            if Path(damage.file).parent == path / "config"
            else f"end its broker, then `rmqfast store repair {path}`; messages in damaged records are lost",
        )
    more = len(report.damage) - _DAMAGE_SHOWN + report.more_damage
    if more > 0:
        yield Finding(
            name="store-damaged",
            subject=subject,
            evidence=f"{more:,} more damaged places",
            next_step=f"`rmqfast store verify {path}` lists them",
        )
    told = {f"{damage.file}: {damage.reason}" for damage in report.damage}
    for note in (note for note in report.notes if note not in told):
        yield Finding(
            name="store-note",
            subject=subject,
            evidence=note,
            next_step=f"`rmqfast store verify {path}` tells more",
            level=Level.ADVICE,
        )
    if report.aborted:
        yield Finding(
            name="store-not-closed",
            subject=subject,
            evidence="the file `abort` is there: a broker runs on it, or it crashed",
            next_step="if no broker runs, start one: it recovers the store",
            level=Level.ADVICE,
        )


def _disk(path: Path) -> Iterator[Finding]:
    used = used_ratio(path)
    if used >= _DELETES:
        result = "refuses messages" if used >= _REFUSES else "deletes files before their time"
        yield Finding(
            name="disk-full",
            subject=f"disk of {path}",
            evidence=f"it is {used:.0%} full: with default settings, a broker {result}",
            next_step="free space, or keep files for a shorter time (fileReservedTime)",
        )


def _limits(path: Path) -> Iterator[Finding]:
    """Yields limits of the system that a broker of this store would exceed."""
    # A broker of RocketMQ opens and maps each file once.
    files = sum(len(names) for kind in ("commitlog", "consumequeue", "index") for *_, names in os.walk(path / kind))
    for limit, name, step in (
        (open_files_limit(), "open files", "`ulimit -n 655350` before its broker starts, or LimitNOFILE in its unit"),
        (
            memory_maps_limit(),
            "memory maps",
            "`sysctl -w vm.max_map_count=655360`, and the same line in /etc/sysctl.conf",
        ),
    ):
        if limit is not None and files > limit // 2:
            yield Finding(
                name="limit-too-low",
                subject="this machine",
                evidence=f"a process may have {limit:,} {name}, and RocketMQ's broker would need one for each of "
                f"{files:,} files, besides its connections",
                next_step=step,
            )
