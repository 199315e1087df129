"""A cluster in which a group conflicts and another is offline, the dashboard beside it, and a visitor."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, sync_playwright

from rmqfast import Admin, ClientConfig, EmbeddedCluster, Message, MessageQueue, Producer
from rmqfast.dashboard import Dashboard
from tests.admin.members import online, wants
from tests.doctor.examined import CAREFUL

from .visitor import Visitor

TOPIC, MIXED, OFFLINE = "orders", "billing", "archive"
QUEUES = [MessageQueue(TOPIC, f"broker-{name}", number) for name in "ab" for number in range(2)]
PASSWORD = "open sesame"  # noqa: S105


@pytest.fixture(scope="package")
def cluster() -> Iterator[EmbeddedCluster]:
    with ExitStack() as stack:
        running = stack.enter_context(EmbeddedCluster(brokers=2, config=CAREFUL | {"traceTopicEnable": "true"}))
        admin = stack.enter_context(Admin(name_server=running.name_server))
        admin.create_topic(TOPIC, queues=2)
        with Producer("shop", name_server=running.name_server) as producer:
            for number in range(40):
                producer.send(Message(TOPIC, b"x"), QUEUES[number % 4])
        admin.create_group(OFFLINE)
        for queue in QUEUES:
            admin.offsets.reset(OFFLINE, queue, 1, force=True)
        name_server = running.name_server
        stack.enter_context(online(name_server, "C1", MIXED, [wants(TOPIC, "TagA", 1)], QUEUES[:2]))
        stack.enter_context(online(name_server, "C2", MIXED, [wants(TOPIC, "TagB", 2)], QUEUES[2:]))
        yield running


@pytest.fixture(scope="package")
def dashboard(cluster: EmbeddedCluster) -> Iterator[Dashboard]:
    config = ClientConfig(name_server=cluster.name_server)
    with Dashboard(config, port=0, password=PASSWORD, interval=0.5) as running:
        yield running


@pytest.fixture
def visitor(dashboard: Dashboard) -> Iterator[Visitor]:
    """Somebody who has logged in."""
    with Visitor(dashboard.address) as made:
        assert made.log_in(PASSWORD).status == 303
        yield made


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path)
        yield started
        started.close()
