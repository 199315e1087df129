"""mqadmin's clusterList, brokerStatus and updateBrokerConfig.

Source: `ClusterListSubCommand`, `BrokerStatusSubCommand`, `UpdateBrokerConfigSubCommand`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from rmqfast.admin.admin_client import AdminClient
from rmqfast.admin.clusters import Brokers
from rmqfast.cells import one_line
from rmqfast.cli.mqadmin.command import PLACES, Flag, JavaCommand, Values, masters_of, number_of, place_of, servers_of
from rmqfast.cli.mqadmin.java import decimal_text
from rmqfast.cli.output import say
from rmqfast.errors import RemotingError
from rmqfast.remoting.hash_map import hash_order

_HOUR_MS = 3_600_000


def list_brokers(client: AdminClient, values: Values) -> None:
    while True:
        (_print_totals if values["m"] else _print_brokers)(client)
        if values["i"] is None:
            return
        time.sleep(number_of(values, "i", 1))


def _print_totals(client: AdminClient) -> None:
    names = ("#InTotalYest", "#OutTotalYest", "#InTotalToday", "#OutTotalToday")
    print(f"{'#Cluster Name':<16}  {'#Broker Name':<32} " + " ".join(f"{name:>14}" for name in names))
    for cluster, name, _, _, status in _statuses(client):
        totals = [
            _number(status, f"msg{way}Total{end}") - _number(status, f"msg{way}Total{begin}")
            for end, begin in (("TodayMorning", "YesterdayMorning"), ("TodayNow", "TodayMorning"))
            for way in ("Put", "Get")
        ]
        print(f"{cluster:<16}  {name:<32} " + " ".join(f"{total:>14}" for total in totals))


def _print_brokers(client: AdminClient) -> None:
    print(
        f"{'#Cluster Name':<16}  {'#Broker Name':<22}  {'#BID':<4}  {'#Addr':<22} {'#Version':<16} "
        f"{'#InTPS(LOAD)':>19} {'#OutTPS(LOAD)':>19} {'#PCWait(ms)':>10} {'#Hour':>5} {'#SPACE':>6}"
    )
    now = time.time_ns() // 1_000_000
    for cluster, name, broker_id, address, status in _statuses(client):
        loads = [
            f"{decimal_text(_rate(status.get(key)), 2):>9}({status.get(f'{pool}ThreadPoolQueueSize', '')},"
            f"{status.get(f'{pool}ThreadPoolQueueHeadWaitTimeMills', '')}ms)"
            for key, pool in (("putTps", "send"), ("getTransferedTps", "pull"))
        ]
        earliest = status.get("earliestMessageTimeStamp")
        hours = (now - int(earliest)) / _HOUR_MS if earliest else 0.0
        space = float(status.get("commitLogDiskRatio") or 0)
        print(
            f"{cluster:<16}  {name:<22}  {broker_id:<4}  {address:<22} {status.get('brokerVersionDesc', ''):<16} "
            f"{loads[0]:>19} {loads[1]:>19} {status.get('pageCacheLockTimeMills', ''):>10} {decimal_text(hours, 2):>5} "
            f"{decimal_text(space, 4):>6}"
        )


def _statuses(client: AdminClient) -> Iterator[tuple[str, str, int, str, Mapping[str, str]]]:
    """Yields cluster, name, id, address and status of each broker. The status is empty if it is not told."""
    info = client.cluster_info()
    for cluster in hash_order(info.clusters):
        for name in sorted(name for name in info.clusters[cluster] if name in info.brokers):
            for broker_id, address in sorted(info.brokers[name].addresses.items()):
                try:
                    status = Brokers(client).status(client.translate(address))
                except RemotingError as error:
                    say(f"{name} at {address} tells nothing of itself: {error}")
                    status = {}
                yield cluster, name, broker_id, address, status


def _number(status: Mapping[str, str], key: str) -> int:
    return int(status.get(key) or 0)


def _rate(rates: str | None) -> float:
    # The first of the three rates is that of the last ten seconds.
    return float(rates.split()[0]) if rates and rates.split() else 0.0


def show_status(client: AdminClient, values: Values) -> None:
    address, cluster = place_of("brokerStatus", values)
    for each in [address] if address else servers_of(client, cluster or ""):
        status = Brokers(client).status(client.translate(each))
        place = "" if address else f"{each:<24} "
        for key in sorted(status):
            print(one_line(f"{place}{key:<32}: {status[key]}"))


def update_config(client: AdminClient, values: Values) -> None:
    address, cluster = place_of("updateBrokerConfig", values)
    for each in [address] if address else masters_of(client, cluster or ""):
        Brokers(client).update_config(client.translate(each), {values["k"]: values["v"]}, force=True)
        print(f"update broker config success, {each}")


COMMANDS = (
    JavaCommand("clusterList", (Flag("m", "moreStats", takes_value=False), Flag("i", "interval")), list_brokers),
    JavaCommand("brokerStatus", PLACES, show_status),
    JavaCommand(
        "updateBrokerConfig",
        (*PLACES, Flag("k", "key", is_required=True), Flag("v", "value", is_required=True)),
        update_config,
    ),
)
