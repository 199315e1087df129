"""Sends batches at a rate, and prints how many messages were sent and how long it took.

python paced_sender.py NAME_SERVER TOPIC RATE SECONDS
"""

from __future__ import annotations

import sys
import time

import rmqfast

#: Messages of a batch.
BATCH = 100


def main() -> None:
    name_server, topic, rate, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    batch = [rmqfast.Message(topic, b"x" * 200) for _ in range(BATCH)]
    with rmqfast.Producer("paced", name_server=name_server) as producer:
        producer.send_batch(batch)
        begin = time.perf_counter()
        sent = 0
        while (now := time.perf_counter() - begin) < seconds:
            # Behind its rate, it does not wait: that shows how much the brokers take.
            if sent > now * rate:
                time.sleep(0.001)
                continue
            producer.send_batch(batch)
            sent += BATCH
        print(sent, time.perf_counter() - begin)


main()
