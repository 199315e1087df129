"""mqadmin's topicList, topicStatus, topicRoute, updateTopic and deleteTopic.

Source: `TopicListSubCommand`, `TopicStatusSubCommand`, `TopicRouteSubCommand`, `UpdateTopicSubCommand`,
`DeleteTopicSubCommand`.
"""

from __future__ import annotations

from rmqfast.admin.admin_client import DLQ_PREFIX, RETRY_PREFIX, AdminClient, select_address
from rmqfast.admin.groups import consumers_at
from rmqfast.admin.topics import Topics, put_topic
from rmqfast.cells import one_line
from rmqfast.cli.mqadmin.command import (
    PLACES,
    Flag,
    JavaCommand,
    Values,
    brokers_of_cluster,
    masters_of,
    number_of,
    place_of,
)
from rmqfast.cli.mqadmin.java import front, milliseconds_text, perm_text, pretty, word
from rmqfast.cli.output import say
from rmqfast.client.instance.api import ClusterInfo
from rmqfast.errors import ClientError, RemotingError, ResponseError
from rmqfast.remoting import RequestCode, ResponseCode
from rmqfast.remoting.hash_map import hash_order
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData
from rmqfast.store.config import TopicConfig

_ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"
_RULE = "-" * 158


def list_topics(client: AdminClient, values: Values) -> None:
    topics = hash_order(client.api.all_topics(timeout=client.timeout))
    if not values["c"]:
        for topic in topics:
            print(one_line(topic))
        return
    info = client.cluster_info()
    print(f"{'#Cluster Name':<20}  {'#Topic':<48}  {'#Consumer Group':<48}")
    for topic in topics:
        if not topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
            cluster, groups = _consumers_of(client, topic, info)
            for group in groups or [""]:
                print(f"{front(cluster, 20):<20}  {front(topic, 64):<64}  {front(group, 64):<64}")


def _consumers_of(client: AdminClient, topic: str, info: ClusterInfo) -> tuple[str, list[str]]:
    """Returns the cluster of a topic, and the groups that its first broker knows. Empty if it does not answer."""
    cluster, groups = "", list[str]()
    try:
        broker = client.route(topic).broker_datas[0]
        named = (name for name in hash_order(info.clusters) if broker.broker_name in info.clusters[name])
        cluster = next(named, "null")
        address = select_address(broker)
        groups = [] if address is None else hash_order(consumers_at(client, client.translate(address), topic))
    except (RemotingError, IndexError) as error:
        # As in Java, the line of the topic stays.
        say(f"the groups of {topic} are unknown: {error}")
    return cluster, groups


def show_status(client: AdminClient, values: Values) -> None:
    rows = Topics(client).status(values["t"])
    print(f"{'#Broker Name':<32}  {'#QID':<4}  {'#Min Offset':<20}  {'#Max Offset':<20}    #Last Updated")
    for row in rows:
        updated = milliseconds_text(row.last_update_timestamp) if row.last_update_timestamp > 0 else ""
        offsets = f"{row.min_offset:<20}  {row.max_offset:<20}"
        print(f"{front(row.broker_name, 32):<32}  {row.queue_id:<4}  {offsets}    {updated}")


def show_route(client: AdminClient, values: Values) -> None:
    route = client.route(values["t"])
    if values["l"]:
        _print_route(route)
        return
    members: dict[str, object] = {
        "brokerDatas": [
            {
                "brokerAddrs": dict(sorted(each.addresses.items())),
                "brokerName": each.broker_name,
                "cluster": each.cluster,
            }
            for each in route.broker_datas
        ],
        "filterServerTable": dict(route.filter_servers),
    }
    if route.order_topic_conf is not None:
        members["orderTopicConf"] = route.order_topic_conf
    members["queueDatas"] = [
        {
            "brokerName": each.broker_name,
            "perm": each.perm,
            "readQueueNums": each.read_queue_nums,
            "topicSysFlag": each.topic_sys_flag,
            "writeQueueNums": each.write_queue_nums,
        }
        for each in route.queue_datas
    ]
    print(pretty(members))


def _print_route(route: TopicRouteData) -> None:
    queues = {each.broker_name: each for each in route.queue_datas}
    rows: list[tuple[object, ...]] = [
        ("#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm")
    ]
    reads = writes = 0
    for broker in sorted(route.broker_datas, key=lambda each: each.broker_name):
        own = queues[broker.broker_name]
        reads, writes = reads + own.read_queue_nums, writes + own.write_queue_nums
        addresses = ", ".join(f"{number}={address}" for number, address in sorted(broker.addresses.items()))
        rows.append(
            (
                broker.cluster,
                broker.broker_name,
                f"{{{addresses}}}",
                own.read_queue_nums,
                own.write_queue_nums,
                own.perm,
            )
        )
    for row in rows:
        _print_row(*row)
    print(_RULE)
    _print_row("Total:", len(queues), "", reads, writes, "")


def _print_row(*cells: object) -> None:
    print(" ".join(f"{cell!s:<{width}}" for cell, width in zip(cells, (45, 32, 50, 10, 11, 5), strict=True)))


def update(client: AdminClient, values: Values) -> None:
    address, cluster = place_of("updateTopic", values)
    is_unit, has_unit_sub, order = (values[letter] == "true" for letter in "uso")
    config = TopicConfig(
        topic_name=values["t"],
        read_queue_nums=number_of(values, "r", 8),
        write_queue_nums=number_of(values, "w", 8),
        perm=number_of(values, "p", 6),
        topic_sys_flag=is_unit | has_unit_sub << 1,
        order=order,
    )
    for each in [address] if address else masters_of(client, cluster or ""):
        put_topic(client, client.translate(each), config)
        if not address:
            print(f"create topic to {each} success.")
    if order:
        _print_order(client, config, address, cluster)
    if address:
        print(f"create topic to {address} success.")
    print(
        f"TopicConfig [topicName={config.topic_name}, readQueueNums={config.read_queue_nums}, "
        f"writeQueueNums={config.write_queue_nums}, perm={perm_text(config.perm)}, "
        f"topicFilterType={config.topic_filter_type}, topicSysFlag={config.topic_sys_flag}, order={word(order)}]",
        end="",
    )


def _print_order(client: AdminClient, config: TopicConfig, address: str | None, cluster: str | None) -> None:
    """Tells the name servers how many queues of each broker an ordered topic has."""
    info = client.cluster_info()
    if address:
        name = next((each.broker_name for each in info.brokers.values() if address in each.addresses.values()), None)
        if name is None:
            raise ClientError(f"no broker is registered at {address}", next_step="`mqadmin clusterList` lists them")
        order = f"{name}:{config.write_queue_nums}"
        merged = {each.partition(":")[0]: each for each in _order_of(client, config.topic_name).split(";") if each}
        merged[name] = order
        _put_order(client, config.topic_name, ";".join(merged[each] for each in hash_order(merged)))
        print(f"set broker orderConf. isOrder=true, orderConf=[{order}]", end="")
    else:
        order = ";".join(f"{name}:{config.write_queue_nums}" for name in brokers_of_cluster(info, cluster or ""))
        _put_order(client, config.topic_name, order)
        print(f"set cluster orderConf. isOrder=true, orderConf=[{order}]", end="")


def _order_of(client: AdminClient, topic: str) -> str:
    fields = {"namespace": _ORDER_NAMESPACE, "key": topic}
    try:
        answer = client.api.ask_name_server(RequestCode.GET_KV_CONFIG, fields, timeout=client.timeout)
    except ResponseError as error:
        if error.code == ResponseCode.QUERY_NOT_FOUND:
            return ""
        raise
    return (answer.ext_fields or {}).get("value", "")


def _put_order(client: AdminClient, topic: str, order: str) -> None:
    fields = {"namespace": _ORDER_NAMESPACE, "key": topic, "value": order}
    for address in client.api.name_servers.addresses:
        client.ask(address, RequestCode.PUT_KV_CONFIG, fields)


def delete(client: AdminClient, values: Values) -> None:
    delete_topic(client, values["t"], values["c"])


def delete_topic(client: AdminClient, topic: str, cluster: str) -> None:
    """Deletes a topic from a cluster, and prints so."""
    Topics(client).delete(topic, cluster=cluster)
    print(f"delete topic [{topic}] from cluster [{cluster}] success.")
    print(f"delete topic [{topic}] from NameServer success.")


COMMANDS = (
    JavaCommand("topicList", (Flag("c", "clusterModel", takes_value=False),), list_topics),
    JavaCommand("topicStatus", (Flag("t", "topic", is_required=True),), show_status),
    JavaCommand("topicRoute", (Flag("t", "topic", is_required=True), Flag("l", "list", takes_value=False)), show_route),
    JavaCommand(
        "updateTopic",
        (
            *PLACES,
            Flag("t", "topic", is_required=True),
            Flag("r", "readQueueNums"),
            Flag("w", "writeQueueNums"),
            Flag("p", "perm"),
            Flag("o", "order"),
            Flag("u", "unit"),
            Flag("s", "hasUnitSub"),
        ),
        update,
    ),
    JavaCommand(
        "deleteTopic", (Flag("t", "topic", is_required=True), Flag("c", "clusterName", is_required=True)), delete
    ),
)
