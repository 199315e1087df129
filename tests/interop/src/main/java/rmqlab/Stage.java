package rmqlab;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What one scenario works with: its topic and groups, clients that are shut down at its end, and the rows it tells. */
final class Stage implements AutoCloseable {
    // A client that leaves out a heartbeat, as another one of its is on the way, tells of its subscription 30 s later:
    // until then its pulls are refused.
    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(90);
    final String name;
    final String namesrv;
    final String broker;
    final String second; // the address of broker-b, or null
    final DefaultMQAdminExt admin;
    private final ConcurrentLinkedDeque<Runnable> ends = new ConcurrentLinkedDeque<>();
    private DefaultMQProducer producer;

    Stage(String name, String namesrv, String broker, String second, DefaultMQAdminExt admin) {
        this.name = name;
        this.namesrv = namesrv;
        this.broker = broker;
        this.second = second;
        this.admin = admin;
    }

    void row(Object... kv) {
        J.out(J.map("scenario", name, "row", J.map(kv)));
    }

    String topic(int queues) throws Exception {
        return topic("s_" + name, queues, 6);
    }

    /** A topic that name server and clients know of. */
    String topic(String topic, int queues, int perm) throws Exception {
        admin.createAndUpdateTopicConfig(broker, new TopicConfig(topic, queues, queues, perm));
        until(() -> {
            try {
                return admin.examineTopicRouteInfo(topic) != null;
            } catch (Exception e) {
                return false;
            }
        });
        return topic;
    }

    String group(String suffix) {
        return "g_" + name + suffix;
    }

    synchronized DefaultMQProducer producer() throws Exception {
        if (producer == null) {
            producer = new DefaultMQProducer("p_" + name);
            producer.setInstanceName("p_" + name);
            producer.setNamesrvAddr(namesrv);
            producer.setSendMsgTimeout(10000);
            producer.start();
            DefaultMQProducer started = producer;
            ends.addFirst(started::shutdown);
        }
        return producer;
    }

    /** A push consumer that is not started, from the first offset on. */
    DefaultMQPushConsumer push(String group, String instance) {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setInstanceName(name + instance);
        c.setNamesrvAddr(namesrv);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        ends.addFirst(c::shutdown);
        return c;
    }

    DefaultMQPullConsumer pull(String group) throws Exception {
        DefaultMQPullConsumer c = new DefaultMQPullConsumer(group);
        c.setInstanceName(name + "pull" + group.hashCode());
        c.setNamesrvAddr(namesrv);
        c.start();
        ends.addFirst(c::shutdown);
        return c;
    }

    /** A consumer that knows the brokers of a topic and which version they are: SQL92 asks for that. */
    static DefaultMQPullConsumer known(DefaultMQPullConsumer c, String topic) throws Exception {
        c.fetchSubscribeMessageQueues(topic);
        var client = c.getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory();
        client.updateTopicRouteInfoFromNameServer(topic);
        for (int tries = 0; tries < 100; tries++) {
            client.sendHeartbeatToAllBrokerWithLock(); // sends nothing while another one is being sent
            var found = client.findBrokerAddressInSubscribe("broker-a", 0, true);
            if (found != null && found.getBrokerVersion() > 0) break;
            pause(100);
        }
        return c;
    }

    void atEnd(Runnable end) {
        ends.addFirst(end);
    }

    SendResult send(String topic, int queue, String body) throws Exception {
        return send(message(topic, body), queue);
    }

    SendResult send(Message m, int queue) throws Exception {
        return producer().send(m, queue(m.getTopic(), queue));
    }

    static Message message(String topic, String body) {
        return new Message(topic, body.getBytes(StandardCharsets.UTF_8));
    }

    MessageQueue queue(String topic, int queue) {
        return new MessageQueue(topic, "broker-a", queue);
    }

    /** All of a topic, read queue by queue; waits for so many. */
    void drain(String kind, String topic, int want) throws Exception {
        until(() -> exists(topic));
        DefaultMQPullConsumer c = pull(group("_drain_" + kind));
        until(() -> {
            try {
                long n = 0;
                for (MessageQueue q : c.fetchSubscribeMessageQueues(topic)) n += c.maxOffset(q);
                return n >= want;
            } catch (Exception e) {
                return false;
            }
        });
        for (MessageQueue q : c.fetchSubscribeMessageQueues(topic)) {
            for (long at = c.minOffset(q), max = c.maxOffset(q); at < max; ) {
                PullResult r = c.pull(q, "*", at, 32);
                if (r.getPullStatus() == PullStatus.FOUND) for (MessageExt m : r.getMsgFoundList()) row("kind", kind, "message", told(m));
                at = r.getNextBeginOffset();
            }
        }
    }

    /** Waits until the broker knows of so many consumed: consumers tell it every five seconds. */
    boolean persisted(String group, String topic, long sum) {
        return until(() -> {
            try {
                return admin.examineConsumeStats(group, topic).getOffsetTable().values().stream().mapToLong(w -> w.getConsumerOffset()).sum() == sum;
            } catch (Exception e) {
                return false;
            }
        });
    }

    /** Waits until the broker knows that nothing of the topic, or of all topics, is left for the group; not where it refuses to tell. */
    void awaitEnd(String group, String topic) {
        until(() -> {
            try {
                return admin.examineConsumeStats(group, topic).computeTotalDiff() == 0;
            } catch (MQBrokerException e) {
                return true; // 4.9.4 does not know what a client of 5.x asks: whoever asks next gets the error
            } catch (Exception e) {
                return false; // nothing is told yet
            }
        });
    }

    /** Whether the broker knows a producer of the group: only then can it hand over a reply. */
    boolean isConnected(String group, String topic) {
        try {
            return !admin.examineProducerConnectionInfo(group, topic).getConnectionSet().isEmpty();
        } catch (Exception e) {
            return false;
        }
    }

    boolean exists(String topic) {
        try {
            return admin.examineTopicRouteInfo(topic) != null;
        } catch (Exception e) {
            return false;
        }
    }

    /** A message as a row; what differs from run to run is masked by the reader. */
    static Map<String, Object> told(MessageExt m) {
        Map<String, Object> all = J.msg(m, false);
        Map<String, Object> some = J.map("body", text(m));
        for (String k : new String[] {"topic", "queueId", "queueOffset", "tags", "keys", "flag", "sysFlag", "reconsumeTimes", "bodyLen"}) some.put(k, all.get(k));
        // several come back at once, and where each goes is a matter of which is first
        if (m.getReconsumeTimes() > 0) some.remove("queueOffset");
        some.put("prepared", m.getPreparedTransactionOffset() != 0);
        some.put("properties", new TreeMap<>(m.getProperties()));
        return some;
    }

    static String text(MessageExt m) {
        return m.getBody().length > 200 ? J.sha1(m.getBody()) : new String(m.getBody(), StandardCharsets.UTF_8);
    }

    static Map<String, Object> told(SendResult r) {
        return J.map("status", r.getSendStatus().name(), "topic", r.getMessageQueue().getTopic(), "queueId", r.getMessageQueue().getQueueId(),
            "queueOffset", r.getQueueOffset(), "region", r.getRegionId(), "traceOn", r.isTraceOn(), "ids", r.getOffsetMsgId() == null ? 0 : r.getOffsetMsgId().split(",").length);
    }

    /** Waits until something holds; says whether it did. */
    static boolean until(BooleanSupplier holds) {
        long end = System.nanoTime() + PATIENCE;
        while (!holds.getAsBoolean()) {
            if (System.nanoTime() > end) return false;
            pause(20);
        }
        return true;
    }

    static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        for (Runnable end : ends) end.run();
    }
}
