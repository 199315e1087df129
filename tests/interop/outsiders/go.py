"""RocketMQ's Go client."""

from __future__ import annotations

from tests.broker.interop import go_client

from .outsider import Outsider, install_once


def install() -> None:
    """The program, built anew where its sources are newer."""
    build = ("go", "build", "-o", go_client.PROGRAM, ".")
    install_once(go_client.PROGRAM.parent, list(go_client.SOURCE.iterdir()), build, cwd=go_client.SOURCE)


GO = Outsider(
    "go",
    "rocketmq-client-go 2.1.2",
    "Go client: sync, asynchronous, one-way, delayed and batch sends; push and orderly consumers with retries",
    install,
    go_client.rows,
)
