"""A topic as a table: SQL over messages that no group consumes.

One queue has 100 orders, of which every fourth was refunded. A query reads the messages whose tags and offsets it asks
for; the broker leaves the others out, and no offset is committed. The table has the messages of the moment at which it
was opened: an order that comes later is in the next one.

It needs DuckDB: pip install 'rmqfast[duckdb]'.
"""

from __future__ import annotations

import duckdb

import rmqfast
from place import Place, chosen, until
from rmqfast import Message
from rmqfast.admin import Admin
from rmqfast.client.producer import Producer
from rmqfast.store.dataset import ScanDataset

COUNT = 100


def main(place: Place) -> None:
    topic = place.named("sql_orders")
    cluster = rmqfast.open_cluster(place.name_server)
    with Admin(name_server=place.name_server) as admin, Producer("example", name_server=place.name_server) as producer:
        admin.create_topic(topic, queues=1)
        until(lambda: len(producer.fetch_publish_message_queues(topic)) == 1)
        for number in range(COUNT):
            send(producer, topic, number)
        # a broker lists a message a moment after it took it
        until(lambda: cluster.scan(topic).count() == COUNT)

        orders = cluster.table(topic)
        tell(
            orders, "select tags, count(*), min(queue_offset), max(queue_offset) from orders group by all order by all"
        )
        tell(orders, "select keys from orders where tags = 'refunded' and queue_offset < 10 order by queue_offset")

        send(producer, topic, COUNT)
        until(lambda: cluster.scan(topic).count() == COUNT + 1)
        print("one more order comes")
        tell(orders, "select count(*) from orders")
        tell(cluster.table(topic), "select count(*) from orders")


def send(producer: Producer, topic: str, number: int) -> None:
    tag = "paid" if number % 4 else "refunded"
    producer.send(Message(topic, b"order %d" % number, tags=tag, keys=f"order-{number}"))


def tell(orders: ScanDataset, query: str) -> None:
    """Prints a query over a table, and its rows."""
    print(query)
    for row in duckdb.connect().register("orders", orders).execute(query).fetchall():
        print("  ", *row)


if __name__ == "__main__":
    with chosen(__doc__) as place:
        main(place)
