package rmqlab;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Consumers that ask when they want: pull and lite pull, offsets, times, ids and keys. */
final class PullScenarios {
    /** Seconds: a consumer of 5.x whose heartbeat found its lock held is refused until the next one, 30 seconds later. */
    private static final double POLL_PATIENCE = 45;

    static void add(Map<String, Scenario.Play> m) {
        m.put("lite", PullScenarios::lite);
        m.put("lite_assign", PullScenarios::liteAssign);
        m.put("pull", PullScenarios::pull);
        m.put("pull_offsets", PullScenarios::offsets);
        m.put("look_up", PullScenarios::lookUp);
        m.put("send_back", PullScenarios::sendBack);
    }

    private static String filled(Stage s) throws Exception {
        String topic = s.topic(2);
        for (int i = 0; i < 10; i++) {
            Message m = Stage.message(topic, "p" + i);
            m.setTags("t" + i % 5);
            m.putUserProperty("n", String.valueOf(i));
            s.send(m, i % 2);
        }
        return topic;
    }

    private static DefaultLitePullConsumer liteConsumer(Stage s, String instance) {
        DefaultLitePullConsumer c = new DefaultLitePullConsumer(s.group(""));
        c.setInstanceName(s.name + instance);
        c.setNamesrvAddr(s.namesrv);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setAutoCommit(false);
        s.atEnd(c::shutdown);
        return c;
    }

    private static List<MessageExt> polled(DefaultLitePullConsumer c, int want, double seconds) {
        List<MessageExt> all = new ArrayList<>();
        for (long end = System.nanoTime() + (long) (seconds * 1e9); all.size() < want && System.nanoTime() < end; ) all.addAll(c.poll(200));
        return all;
    }

    private static int poll(Stage s, DefaultLitePullConsumer c, String kind, int want, double seconds) {
        List<MessageExt> all = polled(c, want, seconds);
        for (MessageExt m : all) s.row("kind", kind, "message", Stage.told(m));
        return all.size();
    }

    private static void lite(Stage s) throws Exception {
        String topic = filled(s);
        DefaultLitePullConsumer c = liteConsumer(s, "one");
        c.subscribe(topic, "*");
        c.start();
        s.row("kind", "count", "first", poll(s, c, "first", 10, POLL_PATIENCE));
        c.commitSync();
        for (MessageQueue q : List.of(s.queue(topic, 0), s.queue(topic, 1))) s.row("kind", "committed", "queue", q.getQueueId(), "offset", c.committed(q));
        s.row("kind", "persisted", "all", s.persisted(s.group(""), topic, 10));
        c.shutdown();
        for (int i = 10; i < 14; i++) s.send(topic, i % 2, "p" + i);
        DefaultLitePullConsumer d = liteConsumer(s, "two");
        d.subscribe(topic, "*");
        d.start();
        s.row("kind", "count", "second", poll(s, d, "second", 4, POLL_PATIENCE));
        s.row("kind", "connection", "type", String.valueOf(s.admin.examineConsumerConnectionInfo(s.group("")).getConsumeType()));
    }

    private static void liteAssign(Stage s) throws Exception {
        String topic = filled(s);
        DefaultLitePullConsumer c = liteConsumer(s, "assign");
        c.start();
        List<MessageQueue> qs = new ArrayList<>(c.fetchMessageQueues(topic));
        s.row("kind", "queues", "count", qs.size());
        c.assign(qs);
        // a pull that is in flight during a seek can still bring messages: after these none does
        polled(c, 10, POLL_PATIENCE);
        c.seek(s.queue(topic, 0), 3);
        c.seekToEnd(s.queue(topic, 1));
        s.row("kind", "count", "polled", poll(s, c, "polled", 2, POLL_PATIENCE) + poll(s, c, "too much", 1, 1));
        s.row("kind", "offset", "early", c.offsetForTimestamp(s.queue(topic, 0), 0L), "late", c.offsetForTimestamp(s.queue(topic, 0), System.currentTimeMillis() + 3_600_000));
    }

    private static void told(Stage s, String what, PullResult r) {
        List<Object> bodies = new ArrayList<>();
        if (r.getMsgFoundList() != null) for (MessageExt m : r.getMsgFoundList()) bodies.add(Stage.told(m));
        s.row("kind", "pull", "what", what, "status", r.getPullStatus().name(), "next", r.getNextBeginOffset(), "min", r.getMinOffset(), "max", r.getMaxOffset(), "messages", bodies);
    }

    private static void pull(Stage s) throws Exception {
        String topic = filled(s);
        DefaultMQPullConsumer c = s.pull(s.group(""));
        MessageQueue q = s.queue(topic, 0);
        told(s, "all", c.pull(q, "*", 0, 32));
        told(s, "two from one", c.pull(q, "*", 1, 2));
        told(s, "at the end", c.pull(q, "*", 5, 32));
        told(s, "behind the end", c.pull(q, "*", 7, 32));
        told(s, "far behind the end", c.pull(q, "*", 1_000_000, 32));
        told(s, "a tag", c.pull(q, "t2 || t4", 0, 32));
        told(s, "no such tag", c.pull(q, "none", 0, 32));
        told(s, "SQL92", Stage.known(c, topic).pull(q, MessageSelector.bySql("n > 3"), 0, 32));
        told(s, "queue that is not there", c.pull(s.queue(topic, 1), "*", 4, 1));
        new Thread(() -> {
            Stage.pause(700);
            try {
                s.send(topic, 0, "arrives");
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }).start();
        told(s, "held until one comes", c.pullBlockIfNotFound(q, "*", 5, 32));
    }

    private static void offsets(Stage s) throws Exception {
        String topic = filled(s);
        DefaultMQPullConsumer c = s.pull(s.group(""));
        for (MessageQueue q : List.of(s.queue(topic, 0), s.queue(topic, 1), s.queue(topic, 7))) {
            s.row("kind", "bounds", "queue", q.getQueueId(), "min", c.minOffset(q), "max", c.maxOffset(q), "early", c.searchOffset(q, 0),
                "late", c.searchOffset(q, System.currentTimeMillis() + 3_600_000), "earliest", c.earliestMsgStoreTime(q) > 0, "committed", c.fetchConsumeOffset(q, true));
        }
        c.updateConsumeOffset(s.queue(topic, 0), 3);
        c.getDefaultMQPullConsumerImpl().getOffsetStore().persist(s.queue(topic, 0));
        Stage.until(() -> {
            try {
                return c.fetchConsumeOffset(s.queue(topic, 0), true) == 3; // it is told in one way
            } catch (Exception e) {
                return false;
            }
        });
        s.row("kind", "committed", "offset", c.fetchConsumeOffset(s.queue(topic, 0), true));
        MessageExt third = c.pull(s.queue(topic, 0), "*", 2, 1).getMsgFoundList().get(0);
        s.row("kind", "time", "at", c.searchOffset(s.queue(topic, 0), third.getStoreTimestamp()) <= 2);
        s.row("kind", "queues", "count", c.fetchSubscribeMessageQueues(topic).size());
    }

    private static void lookUp(Stage s) throws Exception {
        String topic = s.topic(2);
        List<SendResult> sent = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            Message m = Stage.message(topic, "l" + i);
            m.setKeys(Arrays.asList("k" + i, i < 3 ? "low" : "high"));
            sent.add(s.send(m, i % 2));
        }
        Stage.pause(1000);
        DefaultMQPullConsumer c = s.pull(s.group(""));
        s.row("kind", "by offset id", "message", Stage.told(c.viewMessage(topic, sent.get(1).getOffsetMsgId())));
        s.row("kind", "by unique id", "message", Stage.told(c.viewMessage(topic, sent.get(2).getMsgId())));
        for (String key : new String[] {"k4", "low", "high"}) {
            for (MessageExt m : c.queryMessage(topic, key, 32, 0, Long.MAX_VALUE).getMessageList()) s.row("kind", "by key " + key, "message", Stage.told(m));
        }
        try {
            c.queryMessage(topic, "nothing", 32, 0, Long.MAX_VALUE);
        } catch (Exception e) {
            s.row("kind", "by key that is not there", "exception", e.getClass().getSimpleName());
        }
    }

    private static void sendBack(Stage s) throws Exception {
        String topic = filled(s);
        DefaultMQPullConsumer c = s.pull(s.group(""));
        MessageExt m = c.pull(s.queue(topic, 0), "*", 0, 1).getMsgFoundList().get(0);
        Shim.sendBack(c, m, 1);
        s.drain("returned", "%RETRY%" + s.group(""), 1);
        MessageExt second = c.pull(s.queue(topic, 0), "*", 1, 1).getMsgFoundList().get(0);
        Shim.sendBack(c, second, -1);
        s.drain("dead", "%DLQ%" + s.group(""), 1);
    }
}
