"""`rmqfast mqadmin`: twelve commands of RocketMQ's mqadmin, which print what Java prints."""

from __future__ import annotations

from typing import Annotated

import typer

from rmqfast.admin.admin_client import TIMEOUT, AdminClient
from rmqfast.cli.cluster_access import Access, reaches_cluster
from rmqfast.cli.mqadmin import clusters, groups, topics
from rmqfast.errors import ArgumentError

COMMANDS = {command.name: command for command in (*topics.COMMANDS, *groups.COMMANDS, *clusters.COMMANDS)}


@reaches_cluster
def mqadmin(
    words: Annotated[list[str], typer.Argument(metavar="COMMAND [OPTION]...", help="As mqadmin of 4.9.4 takes them.")],
    *,
    access: Access,
) -> None:
    """Runs a command of mqadmin without a JVM, for scripts: prints to standard output what Java prints.

    clusterList, brokerStatus, updateBrokerConfig, topicList, topicStatus, topicRoute, updateTopic, deleteTopic,
    consumerProgress, updateSubGroup, deleteSubGroup, resetOffsetByTime. An error is one line and exit code 1; Java
    prints a stack trace and ends with 0.
    """
    command = COMMANDS.get(words[0])
    if command is None:
        raise ArgumentError(f"mqadmin: expected one of {', '.join(sorted(COMMANDS))}, got {words[0]}")
    values = command.values(words[1:])
    client = AdminClient(access.config(), TIMEOUT)
    client.start()
    try:
        command.run(client, values)
    finally:
        client.shutdown()
