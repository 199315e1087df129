"""Examines a cluster, and tells what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rmqfast.admin.admin_client import TIMEOUT, AdminClient
from rmqfast.arguments import Duration, seconds, suggests_names
from rmqfast.client.instance import ClientConfig
from rmqfast.doctor import broker_checks, group_checks, topic_checks
from rmqfast.doctor.examiner import Examiner
from rmqfast.doctor.finding import Diagnosis

CHECKS = (*broker_checks.CHECKS, *group_checks.CHECKS, *topic_checks.CHECKS)


@suggests_names
def examine_cluster(
    *,
    name_server: str | Sequence[str] | None = None,
    config: ClientConfig | None = None,
    timeout: Duration = TIMEOUT,
    watch: Duration = 0,
) -> Diagnosis:
    """Returns what is wrong with a cluster: misconfigurations and faults that people really have.

    Changes nothing. Each broker gets some ten requests, and those of RocketMQ one for each group, and for each member
    of groups with several.

    Args:
        name_server: `host:port`, several separated by `;`. Default: that of `config`, or `NAMESRV_ADDR`.
        config: Other settings of the connection: TLS, accounts, addresses.
        timeout: Timeout of a request in seconds; three times as long for slow requests.
        watch: Seconds to watch the addresses of brokers. Two brokers of one name take turns of 30 seconds at a name
            server.

    Raises:
        RemotingError: No name server answers.
        ArgumentError: An address has no port.

    Example:
        >>> import rmqfast
        >>> from rmqfast.doctor import examine_cluster
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     diagnosis = examine_cluster(name_server=cluster.name_server)
        >>> [finding.name for finding in diagnosis.findings if finding.level == "advice"]
        ['auto-create', 'single-copy']
    """
    base = config or ClientConfig(name_server=name_server)
    if config is not None and name_server is not None:
        base = replace(config, name_server=name_server)
    client = AdminClient(base, seconds("timeout", timeout))
    client.start()
    try:
        examiner = Examiner(client, base.name_servers, watch=seconds("watch", watch))
        examination = examiner.examine()
    finally:
        client.shutdown()
    findings = [finding for check in CHECKS for finding in check(examination)]
    return Diagnosis.of(f"cluster at {base.name_server}", findings, examiner.unknown)
