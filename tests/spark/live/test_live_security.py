"""Accounts and TLS by options: the driver and the tasks sign, and connections are secret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqfast import Message, Producer
from rmqfast.client.instance import ClientConfig
from rmqfast.remoting import TlsOptions
from tests.broker.certificates import make_authority
from tests.client.accounts import SECRET, guarded_cluster
from tests.spark.engines import said

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFUSED = (
    r"ResponseError: CODE: 1  DESC: Check signature failed for accessKey=reader01 BROKER: \S+\n"
    r"the secret_key is not that of the account: see the broker's plain_acl\.yml"
)

BAD = "87654321"

pytestmark = [pytest.mark.spark, pytest.mark.newest]


def test_accounts_and_certificates_are_options(spark: SparkSession, engine: str, tmp_path: Path) -> None:
    authority = make_authority(tmp_path / "certificates")
    pair = authority.server()
    config = {
        "tls.test.mode.enable": "false",
        "tls.server.mode": "enforcing",
        "tls.server.certPath": str(pair.certificate),
        "tls.server.keyPath": str(pair.key),
        "tls.client.trustCertPath": str(authority.certificate),
        "useTLS": "true",
    }
    with guarded_cluster(tmp_path, config, reader01="PUB|SUB") as cluster:
        tls = TlsOptions(trust=authority.certificate)
        producing = ClientConfig(name_server=cluster.name_server, tls=tls, access_key="reader01", secret_key=SECRET)
        with Producer("tests", config=producing) as producer:
            for _ in range(5):
                producer.send(Message("orders", b"secret"))
        options = {"nameServer": cluster.name_server, "topic": "orders", "accessKey": "reader01", "secretKey": SECRET}
        options |= {"tls": "true", "tlsTrust": str(authority.certificate)}
        assert spark.read.format(engine).options(**options).load().count() == 5
        # an HA port knows neither accounts nor TLS
        assert spark.read.format(engine).options(**options, via="log").load().count() == 5
        with pytest.raises(Exception, match=r"CODE: 1  DESC: Check signature failed") as caught:
            spark.read.format(engine).options(**options | {"secretKey": BAD}).load()
        assert BAD not in str(caught.value)
        assert re.fullmatch(REFUSED, said(caught.value)), said(caught.value)
        with pytest.raises(Exception, match="no name server answers"):
            spark.read.format(engine).options(**options | {"tls": "false"}).load()
