"""The examples in the help of each command, ready to be copied to a shell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Examples by the words of the command, for a store in ~/store and a running `rmqfast server`.
EXAMPLES: Mapping[str, Sequence[str]] = {
    "store info": ("rmqfast store info ~/store", "rmqfast store info ~/store -o json"),
    "store scan": (
        "rmqfast store scan ~/store --topic orders --limit 20",
        "rmqfast store scan ~/store --topic orders --tags 'paid || shipped' --explain",
        "rmqfast store scan ~/store --decode json --schema 'id bigint' -o jsonl",
    ),
    "store diff": (
        "rmqfast store diff ~/store ~/copy",
        "rmqfast store diff ~/store ~/copy --topic orders -o json",
    ),
    "scan": (
        "rmqfast scan orders --limit 20 -n 127.0.0.1:9876",
        "rmqfast scan orders --tags 'paid || shipped' -o jsonl",
        "rmqfast scan --start-time 2026-11-21T09:00 -o csv",
    ),
    "store tail": (
        "rmqfast store tail ~/store -n 3",
        "rmqfast store tail ~/store --topic orders --tags paid -f -o jsonl",
    ),
    "store get": (
        "rmqfast store get ~/store --topic orders --key 42 --max 5",
        "rmqfast store get ~/store --topic orders --queue 0 --offset 0",
    ),
    "store verify": ("rmqfast store verify ~/store", "rmqfast store verify ~/store --no-crc -o json"),
    "store repair": ("rmqfast store repair ~/store", "rmqfast store repair ~/store --yes"),
    "store clean": (
        "rmqfast store clean ~/store --reserved-hours 48",
        "rmqfast store clean ~/store --reserved-hours 48 --yes",
    ),
    "store export": (
        "rmqfast store export ~/store ~/slice --topic orders",
        "rmqfast store export ~/store orders.jsonl --topic orders --tags paid",
        "rmqfast store export ~/store - --keys 42",
    ),
    "ingest": (
        "rmqfast ingest ~/store --topic orders --out parquet",
        "rmqfast ingest -n 127.0.0.1:9876 --format delta --out orders --every 60s",
        "rmqfast ingest ~/store --format iceberg --catalog lake --out shop.orders",
    ),
    "mirror": (
        "rmqfast mirror ~/copies --all-brokers -n 127.0.0.1:9876",
        "rmqfast mirror ~/copies --broker broker-a --once -n 127.0.0.1:9876",
    ),
    "topic list": ("rmqfast topic list -n 127.0.0.1:9876", "rmqfast topic list --all --profile prod"),
    "topic show": (
        "rmqfast topic show orders -n 127.0.0.1:9876",
        "rmqfast topic show orders --watch 5 -n 127.0.0.1:9876",
    ),
    "topic groups": ("rmqfast topic groups orders -n 127.0.0.1:9876",),
    "topic producers": ("rmqfast topic producers orders --group shop -n 127.0.0.1:9876",),
    "topic create": ("rmqfast topic create bills --queues 8 -n 127.0.0.1:9876",),
    "topic delete": (
        "rmqfast topic delete bills -n 127.0.0.1:9876",
        "rmqfast topic delete bills --yes -n 127.0.0.1:9876",
    ),
    "group list": ("rmqfast group list -n 127.0.0.1:9876",),
    "group show": (
        "rmqfast group show cashiers -n 127.0.0.1:9876",
        "rmqfast group show cashiers --watch -n 127.0.0.1:9876",
    ),
    "group create": ("rmqfast group create auditors --retry-max-times 3 -n 127.0.0.1:9876",),
    "group delete": (
        "rmqfast group delete auditors -n 127.0.0.1:9876",
        "rmqfast group delete auditors --yes -n 127.0.0.1:9876",
    ),
    "group connections": ("rmqfast group connections cashiers -n 127.0.0.1:9876",),
    "group stacks": ("rmqfast group stacks cashiers -n 127.0.0.1:9876",),
    "group reset": (
        "rmqfast group reset cashiers orders --to begin -n 127.0.0.1:9876",
        "rmqfast group reset cashiers orders --to 2026-11-21T09:00 --yes",
    ),
    "group skip": (
        "rmqfast group skip cashiers orders -n 127.0.0.1:9876",
        "rmqfast group skip cashiers orders --yes -n 127.0.0.1:9876",
    ),
    "group clone": ("rmqfast group clone cashiers clerks orders --yes -n 127.0.0.1:9876",),
    "group dead-letters": ("rmqfast group dead-letters cashiers --max 10 -n 127.0.0.1:9876",),
    "group resend": (
        "rmqfast group resend cashiers --all -n 127.0.0.1:9876",
        "rmqfast group resend cashiers --all --yes -n 127.0.0.1:9876",
    ),
    "message show": (
        "rmqfast message show --topic orders --key 42 -n 127.0.0.1:9876",
        "rmqfast message show --topic orders --queue 0 --offset 0",
    ),
    "message track": ("rmqfast message track --topic orders --queue 0 --offset 0",),
    "message timeline": ("rmqfast message timeline --topic orders --queue 0 --offset 0",),
    "message trace": ("rmqfast message trace 7F0000010F2A18B4AAC2000000000000",),
    "cluster show": ("rmqfast cluster show -n 127.0.0.1:9876",),
    "cluster config": ("rmqfast cluster config broker-a -n 127.0.0.1:9876",),
    "cluster diff": ("rmqfast cluster diff -n 127.0.0.1:9876", "rmqfast cluster diff broker-a -n 127.0.0.1:9876"),
    "cluster set-config": (
        "rmqfast cluster set-config broker-a transactionCheckMax=9",
        "rmqfast cluster set-config broker-a transactionCheckMax=9 --yes",
    ),
    "cluster stats": ("rmqfast cluster stats broker-a -n 127.0.0.1:9876",),
    "explain": (
        "rmqfast explain --topic orders --queue 0 --offset 0 -n 127.0.0.1:9876",
        "rmqfast explain --group cashiers -n 127.0.0.1:9876",
        "rmqfast explain --topic orders --id 7F00 --history shop.history",
    ),
    "produce": (
        "rmqfast produce orders hello --tags paid --key 42 -n 127.0.0.1:9876",
        "rmqfast produce orders < bodies.txt",
    ),
    "consume": (
        "rmqfast consume orders --group audit --from first -n 127.0.0.1:9876",
        "rmqfast consume orders --group audit --from first --max 1 -o jsonl",
    ),
    "mqadmin": (
        "rmqfast mqadmin topicStatus -t orders -n 127.0.0.1:9876",
        "rmqfast mqadmin consumerProgress -g cashiers -n 127.0.0.1:9876",
    ),
    "doctor": (
        "rmqfast doctor -n 127.0.0.1:9876",
        "rmqfast doctor ~/store",
        "rmqfast doctor --spark -o json",
    ),
    "dashboard": (
        "rmqfast dashboard -n 127.0.0.1:9876",
        "rmqfast dashboard --read-only --host 10.0.0.7 --profile prod",
    ),
    "alarms": (
        "rmqfast alarms -n 127.0.0.1:9876",
        "rmqfast alarms --lag 10000 --silent orders=600 -o jsonl",
        "rmqfast alarms --webhook https://hooks.example/rocketmq --profile prod",
    ),
    "exporter": (
        "rmqfast exporter -n 127.0.0.1:9876",
        "rmqfast exporter --host 10.0.0.7 --port 5557 --profile prod",
    ),
    "watch": (
        "rmqfast watch --out shop.history -n 127.0.0.1:9876",
        "rmqfast watch --out shop.history --group cashiers --profile prod",
    ),
    "demo": ("rmqfast demo --size-mib 64",),
    "server": (
        "rmqfast server --store ~/store -c broker.conf",
        "rmqfast server --dashboard 8080",
        "rmqfast server --print-config",
    ),
    "namesrv": ("rmqfast namesrv", "rmqfast namesrv --port 9877 --print-config"),
    "broker": (
        "rmqfast broker -c broker.conf -n 127.0.0.1:9876",
        "rmqfast broker --print-config",
    ),
}


def example_text(command: str) -> str:
    """Returns the examples of a command under a heading, each on its own line."""
    return "\n".join(["Examples:", *(f"  {line}" for line in EXAMPLES[command])])
