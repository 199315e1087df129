"""rmqfast's cluster starts on ports that others may take meanwhile."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest

from tests.interop.rocketmq import free_ports

from .cluster import OurCluster, PortTakenError

pytestmark = pytest.mark.long


def test_a_start_goes_to_other_ports_where_those_that_were_chosen_are_taken_meanwhile(tmp_path: Path) -> None:
    cluster = OurCluster(tmp_path)
    first = cluster.broker_port
    with closing(socket.create_server(("127.0.0.1", first))), cluster:
        assert cluster.broker_port != first
        socket.create_connection(("127.0.0.1", cluster.broker_port)).close()


def test_a_start_on_ports_that_were_given_says_that_they_are_taken(tmp_path: Path) -> None:
    name_server, broker = free_ports(2)
    cluster = OurCluster(tmp_path, ports=(name_server, broker))
    with closing(socket.create_server(("127.0.0.1", broker))), pytest.raises(PortTakenError, match=str(broker)):
        cluster.start()
