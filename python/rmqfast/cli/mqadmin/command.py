"""A command of mqadmin: its options, and how it is run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from rmqfast.admin.admin_client import AdminClient
from rmqfast.client.instance.api import ClusterInfo
from rmqfast.errors import ArgumentError, ClientError
from rmqfast.remoting.hash_map import hash_order

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Flag:
    """An option of a command.

    Attributes:
        letter: Its short form.
        name: Its long form.
        is_required: Whether it must be given.
        takes_value: Whether a value follows.
    """

    letter: str
    name: str
    is_required: bool = False
    takes_value: bool = True


@dataclass(frozen=True, slots=True)
class JavaCommand:
    """A command under its name in Java. `run` gets the values of the options by their letters."""

    name: str
    flags: tuple[Flag, ...]
    run: Callable[[AdminClient, Values], None]

    def values(self, words: Sequence[str]) -> Values:
        """Parses the words of a command line. Raises `ArgumentError` for those that the command does not know."""
        parser = _Parser(prog=f"mqadmin {self.name}", add_help=False, allow_abbrev=False)
        for flag in self.flags:
            action = "store" if flag.takes_value else "store_true"
            parser.add_argument(
                f"-{flag.letter}", f"--{flag.name}", dest=flag.letter, required=flag.is_required, action=action
            )
        parsed = vars(parser.parse_args(list(words)))
        return {letter: value.strip() if isinstance(value, str) else value for letter, value in parsed.items()}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ArgumentError(f"{self.prog}: {message}")


def number_of(values: Values, letter: str, default: int) -> int:
    """Returns an option's number. Raises `ArgumentError` for another text."""
    text = values[letter]
    try:
        return int(text) if text else default
    except ValueError:
        raise ArgumentError(f"-{letter}: expected a number, got {text!r}") from None


#: Options that choose brokers: one by its address, or all of a cluster.
PLACES = (Flag("b", "brokerAddr"), Flag("c", "clusterName"))


def place_of(command: str, values: Values) -> tuple[str | None, str | None]:
    """Returns the address or the cluster that was named. Raises `ArgumentError` without either."""
    if values["b"] is None and values["c"] is None:
        raise ArgumentError(f"mqadmin {command}: expected -b host:port or -c CLUSTER")
    return values["b"], values["c"]


def brokers_of_cluster(info: ClusterInfo, cluster: str) -> list[str]:
    """Returns the names of a cluster's brokers in Java's order. Raises `ClientError` if there is no such cluster."""
    if cluster not in info.clusters:
        known = ", ".join(sorted(info.clusters)) or "none"
        raise ClientError(f"there is no cluster {cluster}", next_step=f"the name server knows {known}")
    return hash_order(info.clusters[cluster])


def masters_of(client: AdminClient, cluster: str) -> list[str]:
    """Returns the addresses of a cluster's masters in Java's order."""
    info = client.cluster_info()
    brokers = [info.brokers[name] for name in brokers_of_cluster(info, cluster) if name in info.brokers]
    return hash_order(broker.addresses[0] for broker in brokers if 0 in broker.addresses)


def servers_of(client: AdminClient, cluster: str) -> list[str]:
    """Returns the addresses of a cluster's masters and slaves in Java's order."""
    info = client.cluster_info()
    brokers = [info.brokers[name] for name in brokers_of_cluster(info, cluster) if name in info.brokers]
    return hash_order(address for broker in brokers for _, address in sorted(broker.addresses.items()))
