"""The pulling reader and the planning that Spark uses, without Spark; run as a module, it is a peer's child."""

from __future__ import annotations

import arrow_rows
from data import TOPIC
from peer import Answer, serve, timed
from rmqfast._native import plan_topic, read_piece
from rmqfast.client.instance import ClientConfig
from rmqfast.client.ranges import QueueRange, RangePull, RangeRequest
from rmqfast.message import MessageQueue
from rmqfast.spark.live.topic_read import TopicRead

GROUP = "bench_reader"


def pull(name_server: str, batch: str, columns: str) -> Answer:
    """All messages of the topic into Arrow batches of `all` columns or `eight`, over one connection."""
    config = ClientConfig(name_server=name_server)
    wanted = tuple(arrow_rows.EIGHT) if columns == "eight" else None
    request = RangeRequest(config=config, topic=TOPIC, group=GROUP, columns=wanted, batch=int(batch))

    def work() -> Answer:
        ranges, address = whole_queues(request)
        return {"rows": sum(taken.num_rows for taken in RangePull(request, ranges, address).batches())}

    return timed(work)


def whole_queues(request: RangeRequest) -> tuple[list[QueueRange], str]:
    """The topic's queues on its only broker from end to end, and where that is."""
    pieces = [read_piece(piece) for piece in plan_topic(TopicRead(request=request, max_rows=1 << 62))]
    (address,) = {address for address, _ in pieces if address is not None}
    queues = [queue for _, ranges in pieces for queue in ranges]
    return [QueueRange(MessageQueue(TOPIC, name, number), first, end) for name, number, first, end in queues], address


def plan(name_server: str, topic: str, since: str = "") -> Answer:
    """What Spark's driver asks before a read, from a time on if one is given; the value is seconds."""
    start = int(since) if since else None
    config = ClientConfig(name_server=name_server)
    request = RangeRequest(config=config, topic=topic, group=GROUP, start_time=start, microseconds=True)

    def work() -> Answer:
        return {"rows": sum(len(read_piece(piece)[1]) for piece in plan_topic(TopicRead(request=request)))}

    answer = timed(work)
    return {**answer, "value": answer["seconds"]}


if __name__ == "__main__":
    serve({"pull": pull, "plan": plan})
