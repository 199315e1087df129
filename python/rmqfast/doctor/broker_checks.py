"""Checks of brokers and name servers: addresses, names, disks, clocks, copies, rights, transactions.

Source: `BrokerController`, `BrokerStartup`, `DefaultMessageStore.CleanCommitLogService`, `HAService`,
`BrokerFastFailure`, `TransactionalMessageServiceImpl`, `RouteInfoManager`.
"""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from rmqfast.admin import BrokerRow
from rmqfast.admin.clusters import clock_of, log_end_of
from rmqfast.cells import duration_text, size_text, time_text
from rmqfast.doctor.examination import MOST_HALF_MESSAGES, Examination
from rmqfast.doctor.finding import Finding, Level

#: Default parts of a disk from which on RocketMQ deletes files before their time, and refuses messages.
_FORCED, _REFUSED = 0.85, 0.90
_CLOCK, _CLOCK_LATE, _BORN_EARLY = 3_000, 2_000, 2_000
#: Bytes behind which a slave no longer counts, RocketMQ's `haSlaveFallbehindMax`.
_FAR_BEHIND = 256 << 20
#: Waiting time of the oldest send from which on brokers refuse sends, in milliseconds, RocketMQ's defaults.
_SEND_WAIT, _PAGE_CACHE = 200, 1000
_SLOW_PUTS = ("1~2s", "2~3s", "3~4s", "4~5s", "5~10s", "10s~")
_AUTO_CREATE_TOPIC = "TBW102"
#: Releases with CVE-2023-33246: anybody who reaches them may run commands there.
_OPEN_RELEASES = (((0, 0, 0), (4, 9, 6)), ((5, 0, 0), (5, 1, 1)))
_NAMED = 3


def find_unreachable_brokers(examination: Examination) -> Iterator[Finding]:
    """Finds brokers that do not answer at the address that they registered."""
    for row, error in examination.unreachable.items():
        kind = _address_kind(row.address)
        yield Finding(
            name="broker-unreachable",
            subject=_name(row),
            evidence=f"it registered {kind}{row.address}, and does not answer there: {error}",
            next_step="start it; if it runs, set brokerIP1 in its configuration to an address that its clients reach",
        )


def find_differing_name_servers(examination: Examination) -> Iterator[Finding]:
    """Finds name servers that do not answer, or lack brokers or topics that others have."""
    for address, error in examination.silent_name_servers.items():
        yield Finding(
            name="name-servers-differ",
            subject=f"name server {address}",
            evidence=f"it does not answer: {error}",
            next_step="start it, or take it out of namesrvAddr of brokers and clients",
        )
    tables = {answer.address: frozenset(answer.brokers.brokers) for answer in examination.name_servers}
    every_broker = set().union(*tables.values())
    every_topic = frozenset().union(*(answer.topics for answer in examination.name_servers))
    for answer in examination.name_servers:
        brokers = sorted(f"broker {name}" for name in every_broker - tables[answer.address])
        topics = sorted(f"topic {name}" for name in every_topic - answer.topics)
        lacking = [*brokers[:_NAMED], *topics[:_NAMED]]
        more = len(brokers) + len(topics) - len(lacking)
        if lacking:
            yield Finding(
                name="name-servers-differ",
                subject=f"name server {answer.address}",
                evidence=f"it lacks {', '.join(lacking)}{f' and {more} more' if more else ''}, which others have",
                next_step="name all name servers in namesrvAddr of each broker",
            )


def find_duplicate_brokers(examination: Examination) -> Iterator[Finding]:
    """Finds brokers that share a name: the name servers know one of them at a time, and messages seem to vanish."""
    for (name, broker_id), addresses in sorted(_addresses_of_brokers(examination).items()):
        if len(addresses) > 1:
            yield Finding(
                name="duplicate-broker",
                subject=f"broker {name}, id {broker_id}",
                evidence=f"it is registered at {', '.join(sorted(addresses))}",
                next_step="give each broker a brokerName of its own, or slaves a brokerId of their own",
            )
    for row, config in examination.configs.items():
        own = (config.get("brokerName"), config.get("brokerId"))
        if None not in own and own != (row.broker_name, str(row.broker_id)):
            yield Finding(
                name="duplicate-broker",
                subject=_name(row),
                evidence=f"the broker at {row.address} calls itself {own[0]}, id {own[1]}",
                next_step="two brokers use one address: set brokerIP1 and listenPort of each",
            )


def find_shared_names(examination: Examination) -> Iterator[Finding]:
    """Finds names that brokers of several clusters share: clients send to all of them alike."""
    clusters: dict[str, set[str]] = defaultdict(set)
    for row in examination.brokers:
        clusters[row.broker_name].add(row.cluster)
    for name, named in sorted(clusters.items()):
        if len(named) > 1:
            yield Finding(
                name="duplicate-broker",
                subject=f"broker {name}",
                evidence=f"it is in the clusters {', '.join(sorted(named))}",
                next_step="give the brokers of different clusters different names",
            )


def find_full_disks(examination: Examination) -> Iterator[Finding]:
    """Finds disks so full that files are deleted before their time, or messages refused."""
    for row, status in examination.statuses.items():
        config = examination.configs.get(row, {})
        limit = _number(config.get("diskMaxUsedSpaceRatio"), 75) / 100
        forced = _percent(config.get("rocketmq.broker.diskSpaceCleanForciblyRatio"), _FORCED)
        refused = _percent(config.get("rocketmq.broker.diskSpaceWarningLevelRatio"), _REFUSED)
        for key, label in (("commitLogDiskRatio", "commit log"), ("consumeQueueDiskRatio", "consume queues")):
            used = _number(status.get(key), -1)
            # Where the limits are not known, only a disk beyond the last default is told.
            if used < (min(limit, forced) if config else refused):
                continue
            result = "it refuses messages" if used >= refused else "files are deleted before their time"
            if not config:
                result = f"with default settings, {result}"
            room, hours = status.get("commitLogDirCapacity", "size unknown"), config.get("fileReservedTime", "?")
            yield Finding(
                name="disk-full",
                subject=_name(row),
                evidence=f"the disk of its {label} is {used:.0%} full: {result} ({room})",
                next_step=f"free space, or lower fileReservedTime ({hours} h now); sends end at {refused:.0%}",
            )
            break


def find_clocks_apart(examination: Examination) -> Iterator[Finding]:
    """Finds clocks that are wrong, of brokers and producers."""
    for row, status in examination.statuses.items():
        if (clock := clock_of(status)) is None:
            continue
        # The status tells whole seconds, up to two late, of a moment between question and answer.
        ahead, behind = clock - _CLOCK_LATE - examination.answered_at, examination.asked_at - clock
        if max(ahead, behind) > _CLOCK:
            apart = ahead if ahead > behind else -behind
            yield Finding(
                name="clocks-apart",
                subject=_name(row),
                evidence=f"its clock is {duration_text(abs(apart))} {_side(apart)} this machine's",
                next_step="synchronize the clocks by NTP: times of messages, delays and subscriptions depend on them",
            )
    for newest in examination.newest:
        early = newest.born_timestamp - newest.store_timestamp
        if early > _BORN_EARLY:
            yield Finding(
                name="clocks-apart",
                subject=f"producer at {newest.born_host}",
                evidence=f"a message of {newest.topic} was born {duration_text(early)} after "
                f"{newest.broker_name} stored it",
                next_step="synchronize the clocks of producers and brokers by NTP",
            )


def find_single_copies(examination: Examination) -> Iterator[Finding]:
    """Finds masters whose newest messages exist once only, and slaves that are far behind."""
    slaves: dict[str, list[BrokerRow]] = defaultdict(list)
    for row in examination.statuses:
        if not row.is_master:
            slaves[row.broker_name].append(row)
    for row, status in examination.statuses.items():
        config, end = examination.configs.get(row, {}), log_end_of(status)
        if not row.is_master:
            continue
        for slave in slaves[row.broker_name]:
            copied = log_end_of(examination.statuses[slave])
            behind = 0 if end is None or copied is None else end - copied
            if behind > _number(config.get("haSlaveFallbehindMax"), _FAR_BEHIND):
                yield Finding(
                    name="single-copy",
                    subject=_name(slave),
                    evidence=f"it is {size_text(behind)} of the log behind its master",
                    next_step="see that it reaches the master's HA port, and that its disk keeps up",
                )
        if config.get("brokerRole") == "SYNC_MASTER" and not slaves[row.broker_name]:
            yield Finding(
                name="single-copy",
                subject=_name(row),
                evidence="it is a SYNC_MASTER without a slave: sends end with SLAVE_NOT_AVAILABLE",
                next_step="start its slave, or set brokerRole=ASYNC_MASTER",
            )
        elif config.get("flushDiskType") == "ASYNC_FLUSH" and not slaves[row.broker_name]:
            yield Finding(
                name="single-copy",
                subject=_name(row),
                evidence="it flushes behind (ASYNC_FLUSH) and has no slave: a crash of its machine loses messages",
                next_step="set flushDiskType=SYNC_FLUSH, or give it a slave and brokerRole=SYNC_MASTER",
                level=Level.ADVICE,
            )


def find_busy_brokers(examination: Examination) -> Iterator[Finding]:
    """Finds brokers that store messages slowly, or let sends wait: producers get "broker busy"."""
    for row, status in examination.statuses.items():
        config = examination.configs.get(row, {})
        signs: list[str] = []
        wait = _number(status.get("sendThreadPoolQueueHeadWaitTimeMills"), 0)
        if wait >= _number(config.get("waitTimeMillsInSendQueue"), _SEND_WAIT):
            signs.append(f"the oldest send has waited for {wait:.0f} ms")
        locked = _number(status.get("pageCacheLockTimeMills"), 0)
        if locked >= _number(config.get("osPageCacheBusyTimeOutMills"), _PAGE_CACHE):
            signs.append(f"a message has been written for {locked:.0f} ms")
        ranges = dict(re.findall(r"\[(\S+)\]:(\d+)", status.get("putMessageDistributeTime", "")))
        if slow := sum(int(ranges.get(name, 0)) for name in _SLOW_PUTS):
            signs.append(f"{slow:,} messages took a second or longer to store")
        if signs:
            yield Finding(
                name="broker-busy",
                subject=_name(row),
                evidence="; ".join(signs),
                next_step="look at the latency of its disk; producers that are told that it is busy should retry later",
            )


def find_closed_ports(examination: Examination) -> Iterator[Finding]:
    """Finds ports of brokers that are closed, so that old clients or slaves fail."""
    for port in examination.closed_ports:
        if port.purpose == "vip":
            yield Finding(
                name="vip-port-closed",
                subject=_name(port.broker),
                evidence=f"{port.address} accepts no connection: {port.reason}",
                next_step="open it, or set vipChannelEnabled=false in clients before 4.5.1, which send there",
                level=Level.ADVICE,
            )
        else:
            yield Finding(
                name="ha-port-closed",
                subject=_name(port.broker),
                evidence=f"{port.address} accepts no connection, so that slaves copy nothing: {port.reason}",
                next_step="open it for the slaves, and set brokerIP2 to an address that they reach",
            )


def find_auto_creation(examination: Examination) -> Iterator[Finding]:
    """Finds brokers that create topics by themselves, or fail to do so."""
    for row in examination.masters:
        if examination.configs.get(row, {}).get("autoCreateTopicEnable") != "true":
            continue
        tables = [each.topics for each in examination.snapshot.brokers if each.broker_name == row.broker_name]
        if any(table is not None and _AUTO_CREATE_TOPIC not in table for table in tables):
            yield Finding(
                name="auto-create",
                subject=_name(row),
                evidence=f"autoCreateTopicEnable=true, but it lacks {_AUTO_CREATE_TOPIC}: sends to new topics fail",
                next_step=f"restart it, which makes {_AUTO_CREATE_TOPIC}; or create topics by `rmqfast topic create`",
            )
        else:
            yield Finding(
                name="auto-create",
                subject=_name(row),
                evidence="autoCreateTopicEnable=true: a mistyped topic becomes a new one, often on this broker only",
                next_step="create topics, then "
                f"`rmqfast cluster set-config {row.broker_name} autoCreateTopicEnable=false --yes`",
                level=Level.ADVICE,
            )


def find_open_brokers(examination: Examination) -> Iterator[Finding]:
    """Finds brokers that anybody in the network may command."""
    for row, config in examination.configs.items():
        is_protected = config.get("aclEnable") == "true" or config.get("authenticationEnabled") == "true"
        if is_protected or _is_loopback(row.address):
            continue
        release = _release_of(examination.statuses.get(row, {}))
        is_old = not examination.is_ours(row) and _has_known_hole(release)
        yield Finding(
            name="open-to-all",
            subject=_name(row),
            evidence=f"{row.address} takes commands without an account"
            + (
                f", and {_release_text(release)} has CVE-2023-33246: whoever reaches it may run programs on it"
                if is_old
                else ""
            ),
            next_step=("upgrade to 4.9.7, 5.1.2 or newer, " if is_old else "")
            + "set aclEnable=true, and let only clients reach it",
            level=Level.PROBLEM if is_old else Level.ADVICE,
        )


def find_unchecked_transactions(examination: Examination) -> Iterator[Finding]:
    """Finds transactions that stay open, since no producer of their group is online to be asked."""
    open_since: dict[tuple[str, str], list[int]] = defaultdict(list)
    for half in examination.half_messages:
        # Before the first check, the producer may still commit it.
        if half.checks and half.producer_group not in examination.producers:
            open_since[half.producer_group, half.broker_name].append(half.born_timestamp)
    for (group, broker_name), times in sorted(open_since.items()):
        # A broker gives so many at once.
        count = f"at least {len(times)}" if len(times) >= MOST_HALF_MESSAGES else f"{len(times)}"
        yield Finding(
            name="transactions-open",
            subject=f"producer group {group}",
            evidence=f"{count} messages at {broker_name} wait to be committed, the first one since "
            f"{time_text(min(times))}, and no producer of the group is online to be asked",
            next_step=f"start a producer of {group}: after 15 checks (transactionCheckMax) the messages are given up",
        )


def _addresses_of_brokers(examination: Examination) -> dict[tuple[str, int], set[str]]:
    """Returns every address that a name server told of a broker, by name and id."""
    addresses: dict[tuple[str, int], set[str]] = defaultdict(set)
    for row in (*examination.brokers, *examination.later_brokers):
        addresses[row.broker_name, row.broker_id].add(row.address)
    for answer in examination.name_servers:
        for broker in answer.brokers.brokers.values():
            for broker_id, address in broker.addresses.items():
                addresses[broker.broker_name, broker_id].add(address)
    return addresses


def _name(row: BrokerRow) -> str:
    return f"broker {row.broker_name}" if row.is_master else f"slave {row.broker_id} of {row.broker_name}"


def _side(apart: float) -> str:
    return "ahead of" if apart > 0 else "behind"


def _host(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address.rpartition(":")[0].strip("[]"))
    except ValueError:
        return None  # a host's name


def _is_loopback(address: str) -> bool:
    host = _host(address)
    return address.startswith("localhost:") if host is None else host.is_loopback


def _address_kind(address: str) -> str:
    host = _host(address)
    return "the private address " if host is not None and host.is_private and not host.is_loopback else ""


def _number(text: str | None, default: float) -> float:
    try:
        return float(text) if text else default
    except ValueError:
        return default


def _percent(text: str | None, default: float) -> float:
    value = _number(text, default)
    return value / 100 if value > 1 else value


def _release_of(status: Mapping[str, str]) -> tuple[int, ...] | None:
    numbers = re.findall(r"\d+", status.get("brokerVersionDesc", ""))
    return tuple(map(int, numbers[:3])) if len(numbers) >= 2 else None


def _has_known_hole(release: tuple[int, ...] | None) -> bool:
    return release is not None and any(first <= release < fixed for first, fixed in _OPEN_RELEASES)


def _release_text(release: tuple[int, ...] | None) -> str:
    return ".".join(map(str, release or ()))


CHECKS = (
    find_unreachable_brokers,
    find_differing_name_servers,
    find_duplicate_brokers,
    find_shared_names,
    find_full_disks,
    find_clocks_apart,
    find_single_copies,
    find_busy_brokers,
    find_closed_ports,
    find_auto_creation,
    find_open_brokers,
    find_unchecked_transactions,
)
