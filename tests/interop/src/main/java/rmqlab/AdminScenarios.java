package rmqlab;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** What RocketMQ's dashboard and its exporter of metrics ask, by the class that both ask with: neither is in Maven's central repository. */
final class AdminScenarios {
    /** The figures of a broker that the pages and metrics show. */
    private static final List<String> FIGURES = List.of("putTps", "getTotalTps", "getFoundTps", "getMissTps", "msgPutTotalTodayNow", "msgGetTotalTodayNow", "msgPutTotalTodayMorning",
        "msgGetTotalTodayMorning", "msgPutTotalYesterdayMorning", "msgGetTotalYesterdayMorning", "commitLogDiskRatio", "consumeQueueDiskRatio", "commitLogMaxOffset", "commitLogMinOffset",
        "dispatchBehindBytes", "bootTimestamp", "putMessageTimesTotal", "putMessageAverageSize", "sendThreadPoolQueueSize", "pullThreadPoolQueueSize", "putMessageDistributeTime", "runtime");
    private static final List<String> STATISTICS = List.of("TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE", "GROUP_GET_NUMS", "GROUP_GET_SIZE", "SNDBCK_PUT_NUMS", "BROKER_PUT_NUMS", "BROKER_GET_NUMS");

    static void add(Map<String, Scenario.Play> m) {
        m.put("dashboard", AdminScenarios::dashboard);
        m.put("exporter", AdminScenarios::exporter);
    }

    private static DefaultMQPushConsumer consumer(Stage s, String topic) throws Exception {
        AtomicInteger n = new AtomicInteger();
        DefaultMQPushConsumer c = s.push(s.group(""), "c");
        c.subscribe(topic, "*");
        c.registerMessageListener((MessageListenerConcurrently) (ms, x) -> {
            n.addAndGet(ms.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        Stage.until(() -> n.get() >= 4);
        s.persisted(s.group(""), topic, 4);
        return c;
    }

    private static void tell(Stage s, String what, Callable<Object> ask) {
        try {
            s.row("kind", "asked", "what", what, "answer", ask.call());
        } catch (Exception e) {
            int code = e instanceof MQBrokerException ? ((MQBrokerException) e).getResponseCode() : e instanceof MQClientException ? ((MQClientException) e).getResponseCode() : 0;
            s.row("kind", "refused", "what", what, "exception", e.getClass().getSimpleName(), "code", code);
        }
    }

    private static SendResult fill(Stage s, String topic) throws Exception {
        SendResult last = null;
        for (int i = 0; i < 4; i++) {
            Message m = Stage.message(topic, "d" + i);
            m.setTags("t");
            m.setKeys("k" + i);
            last = s.send(m, i % 2);
        }
        return last;
    }

    private static List<String> figures(Stage s) throws Exception {
        Map<String, String> all = s.admin.fetchBrokerRuntimeStats(s.broker).getTable();
        List<String> missing = new ArrayList<>(FIGURES);
        missing.removeAll(all.keySet());
        return missing;
    }

    private static void dashboard(Stage s) throws Exception {
        String topic = s.topic(2), group = s.group("");
        SendResult sent = fill(s, topic);
        DefaultMQPushConsumer c = consumer(s, topic);
        MessageExt message = s.admin.viewMessage(topic, sent.getMsgId());
        String client = c.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId();
        tell(s, "brokers", () -> s.admin.examineBrokerClusterInfo().getBrokerAddrTable().keySet());
        tell(s, "clusters", () -> s.admin.examineBrokerClusterInfo().getClusterAddrTable());
        tell(s, "figures that are missing", () -> figures(s));
        tell(s, "configuration", () -> new TreeMap<>(Map.of("name", s.admin.getBrokerConfig(s.broker).get("brokerName"), "cluster", s.admin.getBrokerConfig(s.broker).get("brokerClusterName"))));
        tell(s, "the topic is listed", () -> s.admin.fetchAllTopicList().getTopicList().contains(topic));
        tell(s, "the topic is the cluster's", () -> s.admin.fetchTopicsByCLuster("DefaultCluster").getTopicList().contains(topic));
        tell(s, "clusters of the topic", () -> s.admin.getTopicClusterList(topic));
        tell(s, "status of the topic", () -> {
            Map<String, String> table = new TreeMap<>();
            s.admin.examineTopicStats(topic).getOffsetTable().forEach((q, o) -> table.put("queue " + q.getQueueId(), o.getMinOffset() + " to " + o.getMaxOffset()));
            return table;
        });
        tell(s, "consumers of the topic", () -> new TreeSet<>(s.admin.queryTopicConsumeByWho(topic).getGroupList()));
        tell(s, "producers", () -> s.isConnected("p_" + s.name, topic));
        tell(s, "consumer's connection", () -> {
            var connection = s.admin.examineConsumerConnectionInfo(group);
            return List.of(connection.getConsumeType().name(), connection.getMessageModel().name(), connection.getConsumeFromWhere().name(), connection.getConnectionSet().size(), connection.getSubscriptionTable().get(topic).getSubString());
        });
        tell(s, "consumer's running info", () -> {
            var running = s.admin.getConsumerRunningInfo(group, client, false);
            return List.of(running.getProperties().getProperty("PROP_CONSUME_TYPE"), running.getSubscriptionSet().size(), running.getMqTable().keySet().stream().filter(q -> q.getTopic().equals(topic)).count());
        });
        tell(s, "consumer's stacks", () -> s.admin.getConsumerRunningInfo(group, client, true).getJstack().length() > 1000);
        tell(s, "progress", () -> {
            Map<String, String> table = new TreeMap<>();
            s.admin.examineConsumeStats(group, topic).getOffsetTable().forEach((q, w) -> table.put("queue " + q.getQueueId(), w.getConsumerOffset() + " of " + w.getBrokerOffset()));
            return table;
        });
        tell(s, "spans of time", () -> s.admin.queryConsumeTimeSpan(topic, group).size());
        tell(s, "the group is listed", () -> s.admin.getAllSubscriptionGroup(s.broker, 5000).getSubscriptionGroupTable().containsKey(group));
        tell(s, "message by key", () -> s.admin.queryMessage(topic, "k2", 64, 0, Long.MAX_VALUE).getMessageList().size());
        tell(s, "message by offset id", () -> Stage.text(s.admin.viewMessage(topic, sent.getOffsetMsgId())));
        tell(s, "its track", () -> s.admin.messageTrackDetail(message).stream().map(t -> t.getConsumerGroup() + " " + t.getTrackType()).sorted().toList());
        tell(s, "consumed again directly", () -> s.admin.consumeMessageDirectly(group, client, topic, message.getMsgId()).getConsumeResult().name());
        tell(s, "offsets reset to now", () -> s.admin.resetOffsetByTimestamp(topic, group, System.currentTimeMillis() + 3_600_000, true).size());
        tell(s, "a topic made, and deleted", () -> {
            s.topic("s_dashboard_short", 1, 6);
            s.admin.deleteTopicInBroker(java.util.Set.of(s.broker), "s_dashboard_short");
            return s.admin.getAllTopicConfig(s.broker, 5000).getTopicConfigTable().containsKey("s_dashboard_short");
        });
        tell(s, "a topic that is not there", () -> s.admin.examineTopicStats("s_dashboard_absent").getOffsetTable().size());
        tell(s, "a group that is not there", () -> s.admin.examineConsumerConnectionInfo("g_absent").getConnectionSet().size());
    }

    private static void exporter(Stage s) throws Exception {
        String topic = s.topic(2), group = s.group("");
        fill(s, topic);
        DefaultMQPushConsumer c = consumer(s, topic);
        tell(s, "topics", () -> s.admin.fetchAllTopicList().getTopicList().contains(topic));
        tell(s, "offsets of the topic", () -> s.admin.examineTopicStats(topic).getOffsetTable().values().stream().mapToLong(o -> o.getMaxOffset()).sum());
        tell(s, "groups of the topic", () -> new TreeSet<>(s.admin.queryTopicConsumeByWho(topic).getGroupList()));
        tell(s, "difference", () -> s.admin.examineConsumeStats(group, topic).computeTotalDiff());
        tell(s, "consumers", () -> s.admin.examineConsumerConnectionInfo(group).getConnectionSet().size());
        tell(s, "running", () -> s.admin.getConsumerRunningInfo(group, c.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId(), false).getStatusTable().keySet());
        tell(s, "figures that are missing", () -> figures(s));
        for (String name : STATISTICS) {
            String key = name.startsWith("TOPIC") ? topic : name.startsWith("BROKER") ? "DefaultCluster" : topic + "@" + group;
            // what nothing happened to has no figures
            tell(s, name, () -> s.admin.viewBrokerStatsData(s.broker, name, key).getStatsMinute() != null);
        }
    }

    private AdminScenarios() { }
}
