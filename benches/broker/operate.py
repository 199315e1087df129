"""What a cluster of 2,000 topics and 3,000 groups costs those who look at it: snapshots, lists, scrapes."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from broker import wire
from broker.sides import SCRIPT
from data import scratch_dir
from groups import Plan
from machine import ROOT
from measurement import Series, interleave, take
from peer import Answer, Failed, Missing
from processes import stop

TOPICS, GROUPS, BROKERS, SILENT = 2000, 3000, 3, 20
SILENT_GROUP = "silent"


def operate(plan: Plan) -> list[Series]:
    """All rows, on three brokers in processes of their own."""
    topics, groups = int(TOPICS * plan.scale), int(GROUPS * plan.scale)
    with cluster(topics, groups) as name_server:
        found = interleave(
            {
                "operate snapshot": partial(snapshot, name_server, groups),
                "operate list rmqfast": partial(run, rmqfast("group", "list", "-n", name_server), groups),
                "operate list mqadmin": partial(run, mqadmin(name_server), groups),
            },
            plan.effort,
            [],
        )
        found += silent(plan, name_server) + scrapes(plan, name_server, groups)
        found += doctor(plan, name_server) + pages(plan, name_server) + beside(plan, name_server)
        return found + conflict(name_server)


def snapshot(name_server: str, groups: int) -> Answer:
    """The library's own time, without the start of a program."""
    import rmqfast

    with rmqfast.Admin(name_server=name_server, timeout=30) as admin:
        begin = time.perf_counter()
        taken = admin.snapshot()
        rows = len(taken.groups)
        seconds = time.perf_counter() - begin
    if taken.problems or rows < groups:
        raise Failed(f"{rows} groups, {taken.problems}")
    return {"rows": rows, "seconds": seconds, "value": seconds}


def silent(plan: Plan, name_server: str) -> list[Series]:
    """`group show` of a group with members that do not answer."""
    show = Series("operate show silent")
    with silent_members(name_server):
        command = rmqfast("group", "show", SILENT_GROUP, "-n", name_server)
        for _ in range(plan.effort.repeat):
            take(show, lambda: valued(run(command, 1)))
    return [show]


def scrapes(plan: Plan, name_server: str, groups: int) -> list[Series]:
    """A scrape of the exporter, the samples in it, and the requests that a broker gets from it."""
    scrape, samples, asked = (Series(f"operate {name}") for name in ("scrape", "samples", "requests"))
    with serving("exporter", "-n", name_server, "--port", "0") as (_, words):
        address = words["metrics"]

        def once() -> Answer:
            begin = time.perf_counter()
            text = metrics(address)
            seconds = time.perf_counter() - begin
            rows = sum(1 for line in text.splitlines() if not line.startswith("#"))
            if rows < groups * BROKERS:
                raise Failed(f"{rows} samples")
            return {"rows": rows, "seconds": seconds, "value": seconds}

        for _ in range(plan.effort.repeat):
            take(scrape, once)
        take(samples, lambda: {**(each := once()), "value": each["rows"]})
        take(asked, lambda: requests(address))
    return [scrape, samples, asked]


def metrics(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 - of this machine
        text: str = answer.read().decode()
    return text


def requests(address: str) -> Answer:
    """Requests per second and broker over half a minute: single ones as counted, and five in each interval of 15 s."""
    counts = []
    for pause in (0, 30):
        time.sleep(pause)
        lines = metrics(address).splitlines()
        counts += [float(line.split()[1]) for line in lines if line.startswith("rmqfast_exporter_questions_total ")]
    single = (counts[1] - counts[0]) / 30 / BROKERS
    return {"rows": 1, "seconds": 30.0, "value": single + 5 / 15}


def pages(plan: Plan, name_server: str) -> list[Series]:
    """The page of all groups from the dashboard, a process of its own, and its memory afterwards."""
    page, memory = Series("operate page"), Series("operate page memory")
    with serving("dashboard", "-n", name_server, "--port", "0") as (pid, words):
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        form = browser.open(f"{words['dashboard']}login").read().decode()
        token = form.partition('name="token" value="')[2].partition('"')[0]
        fields = urllib.parse.urlencode({"token": token, "password": words["password"]}).encode()
        browser.open(f"{words['dashboard']}login", fields).read()

        def once() -> Answer:
            begin = time.perf_counter()
            text = browser.open(f"{words['dashboard']}groups").read()
            seconds = time.perf_counter() - begin
            if b"group-00000" not in text:
                raise Failed("no page of groups")
            return {"rows": 1, "seconds": seconds, "value": seconds * 1000}

        for _ in range(10 * plan.effort.repeat):
            take(page, once)
        time.sleep(20)  # some looks at the cluster
        resident = Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]
        take(memory, lambda: {"rows": 1, "seconds": 1.0, "value": int(resident) / 1024})
        return [page, memory, paint(plan, words)]


def paint(plan: Plan, words: dict[str, str]) -> Series:
    """The time until Chromium shows the first content of the page of all groups."""
    shown = Series("operate page paint")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        take(shown, partial(_raise, Missing("Chromium is not installed")))
        return shown
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        tab = browser.new_page()
        tab.goto(f"{words['dashboard']}login")
        tab.fill("input[name=password]", words["password"])
        tab.keyboard.press("Enter")
        tab.wait_for_url(words["dashboard"])

        def once() -> Answer:
            tab.goto(f"{words['dashboard']}groups")
            milliseconds = tab.wait_for_function(
                "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
            ).json_value()
            return {"rows": 1, "seconds": milliseconds / 1000, "value": milliseconds}

        for _ in range(2 * plan.effort.repeat):
            take(shown, once)
        browser.close()
    return shown


def _raise(error: Exception) -> Answer:
    raise error


#: Messages a second beside which the dashboard runs, and for how many seconds.
RATE, SECONDS = 20_000, 12


def beside(plan: Plan, name_server: str) -> list[Series]:
    """Messages that are sent at a rate, without a dashboard beside them and with one."""
    without, with_one = Series("operate beside none"), Series("operate beside dashboard")

    def sent() -> Answer:
        command = [sys.executable, str(Path(__file__).with_name("paced_sender.py"))]
        command += [name_server, "topic-00000", str(RATE), str(SECONDS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode:
            raise Failed(done.stderr[-300:])
        count, seconds = done.stdout.split()
        return {"rows": int(count), "seconds": float(seconds)}

    for _ in range(plan.effort.repeat):
        take(without, sent)
        with serving("dashboard", "-n", name_server, "--port", "0"):
            take(with_one, sent)
    return [without, with_one]


def doctor(plan: Plan, name_server: str) -> list[Series]:
    """`rmqfast doctor` of the whole cluster. Its groups are offline with a backlog: it finds them all."""
    found = Series("operate doctor")
    for _ in range(plan.effort.repeat):
        take(found, lambda: valued(run(rmqfast("doctor", "-n", name_server), int(GROUPS * plan.scale))))
    return [found]


def conflict(name_server: str) -> list[Series]:
    """The time from a member's start until a conflict with another one is told: by an alarm, and by mqadmin."""
    ours, theirs = Series("operate conflict alarm"), Series("operate conflict mqadmin")
    with ExitStack() as stack:
        command = rmqfast("alarms", "-n", name_server, "-o", "jsonl")
        alarms = stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        )
        stack.callback(stop, alarms)
        assert alarms.stdout is not None
        assert alarms.stderr is not None
        # The alarms that the cluster has already; they are told before the line on standard error.
        drained = threading.Thread(target=drain, args=(alarms.stdout, seen := threading.Event()), daemon=True)
        drained.start()
        if not any(line.startswith("ready") for line in alarms.stderr):
            raise Failed("alarms did not start")
        stack.enter_context(member(name_server, "C1", "TagA"))
        time.sleep(HEARTBEAT)
        begin = time.perf_counter()
        stack.enter_context(member(name_server, "C2", "TagB"))
        if not seen.wait(120):
            raise Failed("no alarm told of a conflict")
        seconds = time.perf_counter() - begin
        take(ours, lambda: {"rows": 1, "seconds": seconds, "value": seconds})
        take(theirs, lambda: first_warning(name_server, begin))
    return [ours, theirs]


#: Seconds in which the first member has told of itself.
HEARTBEAT = 12.0
#: Seconds after which mqadmin should have told.
LONGEST = 400.0
CONFLICT_GROUP = "conflicting"


def drain(lines: Iterable[str], seen: threading.Event) -> None:
    """Reads what `rmqfast alarms` prints, and notes a conflict."""
    for line in lines:
        if json.loads(line)["name"] == "subscription-conflict":
            seen.set()


def first_warning(name_server: str, begin: float) -> Answer:
    """Runs mqadmin again and again until it tells of the conflict."""
    command = [*mqadmin(name_server)[:4], "consumerStatus", "-g", CONFLICT_GROUP, "-n", name_server]
    while (seconds := time.perf_counter() - begin) < LONGEST:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=scratch_dir())
        if "Different subscription" in done.stdout:
            return {"rows": 1, "seconds": time.perf_counter() - begin, "value": time.perf_counter() - begin}
        time.sleep(5)
    raise Failed(f"mqadmin does not tell of a conflict within {seconds:.0f} s")


@contextmanager
def member(name_server: str, name: str, tags: str) -> Iterator[None]:
    """A consumer with default settings that wants other tags than the other one."""
    import rmqfast
    from rmqfast.client.push import ConsumeConcurrentlyStatus

    consumer = rmqfast.PushConsumer(CONFLICT_GROUP, name_server=name_server, instance_name=name)
    consumer.subscribe("topic-00000", tags)
    consumer.register_message_listener(lambda *_: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    with consumer:
        yield


def valued(answer: Answer) -> Answer:
    return {**answer, "value": answer["seconds"]}


def rmqfast(*words: str) -> list[str]:
    return [sys.executable, "-m", "rmqfast", *words]


def mqadmin(name_server: str) -> list[str]:
    if shutil.which("java") is None or shutil.which("mvn") is None:
        raise Missing("java or mvn is not installed")
    return [str(SCRIPT), "java", "4.9.4", "Admin", "consumerProgress", "-n", name_server]


def run(command: Sequence[str], rows: int) -> Answer:
    """Times a program from its start to its end."""
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    seconds = time.perf_counter() - begin
    if done.returncode > 1 or len(done.stdout.splitlines()) < rows:
        raise Failed(f"{command[:4]}: {done.returncode} {done.stderr[-300:]}")
    return {"rows": rows, "seconds": seconds}


@contextmanager
def cluster(topics: int, groups: int) -> Iterator[str]:
    """A name server and three brokers whose stores have all topics, groups and offsets, and two messages a queue."""
    directory = scratch_dir() / "operate"
    shutil.rmtree(directory, ignore_errors=True)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        directory.mkdir(parents=True)
        names = directory / "namesrv.conf"
        names.write_text(f"kvConfigPath={directory / 'kv.json'}\n")
        _, told = stack.enter_context(serving("namesrv", "--port", "0", "-c", str(names)))
        for number in range(BROKERS):
            write_store(directory / f"store{number}", topics, groups)
            conf = directory / f"broker{number}.conf"
            lines = (
                f"storePathRootDir={directory / f'store{number}'}",
                f"brokerName=broker-{number}",
                "listenPort=0",
                *(f"{name}={size}" for name, size in SIZES.items()),
            )
            conf.write_text("\n".join(lines))
            stack.enter_context(serving("broker", "-c", str(conf), "-n", told["name_server"]))
        yield told["name_server"]


SIZES = {
    "mappedFileSizeCommitLog": 64 << 20,
    "mappedFileSizeConsumeQueue": 2000,
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
}


def write_store(path: Path, topics: int, groups: int) -> None:
    """A store with the tables that a broker of RocketMQ leaves."""
    import rmqfast

    names = [f"topic-{number:05}" for number in range(topics)]
    options = rmqfast.AppendOptions(file_size=64 << 20, queue_file_size=2000, index_slots=1000, index_entries=4000)
    with rmqfast.open_store(path, mode="a", options=options) as store:
        store.append_many(
            rmqfast.Message(name, b"x" * 100, queue_id=queue) for name in names for queue in range(4) for _ in range(2)
        )
    config = path / "config"
    config.mkdir(exist_ok=True)
    members = [f"group-{number:05}" for number in range(groups)]
    queues = dict.fromkeys(names, 4) | {f"%RETRY%{name}": 1 for name in members}
    version = {"counter": 1, "timestamp": 1}
    tables: dict[str, dict[str, Any]] = {
        "topics.json": {
            "dataVersion": version,
            "topicConfigTable": {name: topic(name, count) for name, count in queues.items()},
        },
        "subscriptionGroup.json": {
            "dataVersion": version,
            "subscriptionGroupTable": {name: {"groupName": name, "retryMaxTimes": 16} for name in members},
        },
        "consumerOffset.json": {
            "offsetTable": {
                f"{names[number % topics]}@{name}": {"0": 1, "1": 1, "2": 0, "3": 1}
                for number, name in enumerate(members)
            }
        },
    }
    for file, content in tables.items():
        (config / file).write_text(json.dumps(content))


def topic(name: str, queues: int) -> dict[str, Any]:
    return {"topicName": name, "readQueueNums": queues, "writeQueueNums": queues, "perm": 6}


@contextmanager
def serving(*words: str) -> Iterator[tuple[int, dict[str, str]]]:
    """A server of rmqfast, and what its line `ready` says."""
    log = (scratch_dir() / f"operate-{words[0]}.log").open("ab")
    with log, subprocess.Popen(rmqfast(*words), stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT) as child:
        try:
            assert child.stdout is not None
            line = child.stdout.readline().split()
            if line[:1] != ["ready"]:
                raise Failed(f"{words[0]} did not start: {log.name}")
            yield child.pid, dict(word.split("=", 1) for word in line[1:])
        finally:
            stop(child)


@contextmanager
def silent_members(name_server: str) -> Iterator[None]:
    """Members that heartbeat at each broker, and answer nothing."""
    with ExitStack() as stack:
        brokers = sorted(
            address
            for broker in cluster_info(name_server)["brokerAddrTable"].values()
            for address in broker["brokerAddrs"].values()
        )
        for number in range(SILENT):
            for address in brokers:
                host, _, port = address.rpartition(":")
                connection = stack.enter_context(socket.create_connection((host, int(port)), 30))
                connection.sendall(wire.frame(HEART_BEAT, {}, json.dumps(heartbeat(f"10.0.0.1@S{number:02}")).encode()))
                wire.answer(connection)
        yield


HEART_BEAT, GET_BROKER_CLUSTER_INFO = 34, 106


def heartbeat(client_id: str) -> dict[str, Any]:
    topics = ("topic-00000", f"%RETRY%{SILENT_GROUP}")
    return {
        "clientID": client_id,
        "producerDataSet": [],
        "consumerDataSet": [
            {
                "groupName": SILENT_GROUP,
                "consumeType": "CONSUME_PASSIVELY",
                "messageModel": "CLUSTERING",
                "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                "subscriptionDataSet": [{"topic": name, "subString": "*", "subVersion": 1} for name in topics],
            }
        ],
    }


def cluster_info(name_server: str) -> dict[str, Any]:
    from rmqfast.remoting import RemotingClient, fastjson

    with RemotingClient(name_server) as client:
        decoded: dict[str, Any] = fastjson.decode(client.request(GET_BROKER_CLUSTER_INFO).body)
    return decoded
