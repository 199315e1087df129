package rmqlab;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Push consumers: what arrives, how often, in which order, and what becomes of what failed. */
final class PushScenarios {
    static void add(Map<String, Scenario.Play> m) {
        m.put("retry", PushScenarios::retry);
        m.put("orderly", PushScenarios::orderly);
        m.put("delay", PushScenarios::delay);
        m.put("broadcast", PushScenarios::broadcast);
        m.put("push", s -> received(s, c -> c.subscribe(s.topic(4), "*"), 12));
        m.put("tags", s -> received(s, c -> c.subscribe(s.topic(4), "t0 || t2"), 8));
        m.put("sql", s -> received(s, c -> c.subscribe(s.topic(4), MessageSelector.bySql("(n BETWEEN 2 AND 7 AND name = 'even') OR absent IS NOT NULL")), 3));
        m.put("from_last", s -> fromWhere(s, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET));
        m.put("from_timestamp", s -> fromWhere(s, ConsumeFromWhere.CONSUME_FROM_TIMESTAMP));
    }

    interface Subscribes {
        void to(DefaultMQPushConsumer c) throws Exception;
    }

    /** Twelve messages, three to a queue, before the consumer is there; what it gets of them. */
    private static void received(Stage s, Subscribes subscribe, int want) throws Exception {
        String topic = s.topic(4);
        sendTwelve(s, topic);
        AtomicInteger n = new AtomicInteger();
        DefaultMQPushConsumer c = consumer(s, "", n, "received");
        subscribe.to(c);
        c.start();
        Stage.until(() -> n.get() >= want);
        Stage.pause(500);
        s.row("kind", "count", "received", n.get());
        sendTwelve(s, topic);
        Stage.until(() -> n.get() >= 2 * want);
        Stage.pause(500);
        s.row("kind", "count", "received", n.get());
        c.shutdown();
        if (want == 12) offsets(s, s.group(""), topic); // what a filter leaves out moves the offset when the long poll ends
    }

    private static void sendTwelve(Stage s, String topic) throws Exception {
        for (int i = 0; i < 12; i++) {
            Message m = Stage.message(topic, s.name + i);
            m.setTags("t" + i % 3);
            m.setKeys("k" + i + " common");
            m.setFlag(i);
            m.putUserProperty("n", String.valueOf(i));
            m.putUserProperty("name", i % 2 == 0 ? "even" : "odd");
            s.send(m, i % 4);
        }
    }

    private static DefaultMQPushConsumer consumer(Stage s, String suffix, AtomicInteger n, String kind) {
        DefaultMQPushConsumer c = s.push(s.group(suffix), kind);
        c.registerMessageListener((MessageListenerConcurrently) (ms, x) -> {
            for (MessageExt m : ms) {
                s.row("kind", kind, "message", Stage.told(m));
                n.incrementAndGet();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        return c;
    }

    /** The offsets of a group that has consumed everything. It sends them one-way when it ends: this waits until the broker has them. */
    static void offsets(Stage s, String group, String topic) throws Exception {
        s.awaitEnd(group, topic);
        Map<String, Object> table = new TreeMap<>();
        s.admin.examineConsumeStats(group, topic).getOffsetTable().forEach((q, w) -> table.put(q.getTopic() + " " + q.getQueueId(), w.getBrokerOffset() + " " + w.getConsumerOffset()));
        s.row("kind", "offsets", "table", table);
    }

    private static void fromWhere(Stage s, ConsumeFromWhere where) throws Exception {
        String topic = s.topic(2);
        for (int i = 0; i < 4; i++) s.send(topic, i % 2, "before" + i);
        Stage.pause(1200);
        AtomicInteger n = new AtomicInteger();
        DefaultMQPushConsumer c = consumer(s, "", n, "received");
        c.setConsumeFromWhere(where);
        c.subscribe(topic, "*");
        c.start();
        Stage.until(() -> GroupScenarios.owned(c, topic).size() == 2);
        Stage.pause(1500);
        for (int i = 0; i < 4; i++) s.send(topic, i % 2, "after" + i);
        Stage.until(() -> n.get() >= 8);
        Stage.pause(500);
    }

    /** Odd ones fail always, with at most two retries; one says when it wants to come again; then the dead letters are read. */
    private static void retry(Stage s) throws Exception {
        String topic = s.topic(2), group = s.group("");
        AtomicInteger n = new AtomicInteger();
        DefaultMQPushConsumer c = s.push(group, "c");
        c.setMaxReconsumeTimes(2);
        c.subscribe(topic, "*");
        c.registerMessageListener((MessageListenerConcurrently) (ms, x) -> {
            for (MessageExt m : ms) s.row("kind", "received", "message", Stage.told(m));
            n.addAndGet(ms.size());
            String body = Stage.text(ms.get(0));
            if (body.equals("m5")) x.setDelayLevelWhenNextConsume(ms.get(0).getReconsumeTimes() == 0 ? 1 : -1);
            return Integer.parseInt(body.substring(1)) % 2 == 0 ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        c.start();
        for (int i = 0; i < 6; i++) {
            Message m = Stage.message(topic, "m" + i);
            m.setTags("tag");
            m.setKeys("key" + i);
            s.send(m, i % 2);
        }
        Stage.until(() -> n.get() >= 3 + 2 * 3 + 2);
        Stage.pause(1500);
        s.row("kind", "count", "received", n.get());
        c.shutdown();
        s.drain("dead", "%DLQ%" + group, 3);
        s.drain("retried", "%RETRY%" + group, 5);
        offsets(s, group, null);
    }

    private static void orderly(Stage s) throws Exception {
        String topic = s.topic(2);
        for (int i = 0; i < 10; i++) s.send(topic, i % 2, "o" + i);
        Map<Integer, List<String>> seen = new ConcurrentHashMap<>();
        Map<String, Integer> suspended = new ConcurrentHashMap<>();
        AtomicInteger done = new AtomicInteger();
        DefaultMQPushConsumer c = s.push(s.group(""), "c");
        c.setMaxReconsumeTimes(3);
        c.setSuspendCurrentQueueTimeMillis(200);
        c.subscribe(topic, "*");
        c.registerMessageListener((MessageListenerOrderly) (ms, x) -> {
            MessageExt m = ms.get(0);
            String body = Stage.text(m);
            seen.computeIfAbsent(m.getQueueId(), k -> Collections.synchronizedList(new ArrayList<>())).add(body + " " + m.getReconsumeTimes());
            // o2 fails twice; o5 for good, and goes to the dead letters by way of the retry topic
            if ((body.equals("o2") && suspended.merge(body, 1, Integer::sum) <= 2) || body.equals("o5")) return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            done.incrementAndGet();
            return ConsumeOrderlyStatus.SUCCESS;
        });
        c.start();
        Stage.until(() -> done.get() >= 9);
        Stage.pause(1000);
        c.shutdown();
        for (Map.Entry<Integer, List<String>> e : new TreeMap<>(seen).entrySet()) s.row("kind", "sequence", "queue", e.getKey(), "seen", e.getValue());
        s.drain("dead", "%DLQ%" + s.group(""), 1);
        offsets(s, s.group(""), topic);
    }

    private static void delay(Stage s) throws Exception {
        String topic = s.topic(1);
        AtomicInteger n = new AtomicInteger();
        DefaultMQPushConsumer c = s.push(s.group(""), "c");
        c.subscribe(topic, "*");
        c.registerMessageListener((MessageListenerConcurrently) (ms, x) -> {
            for (MessageExt m : ms) {
                long late = m.getStoreTimestamp() - m.getBornTimestamp();
                int level = Integer.parseInt(m.getProperty("DELAY") == null ? "0" : m.getProperty("DELAY"));
                long seconds = level == 0 ? 0 : level == 2 ? 3 : 1;
                s.row("kind", "received", "notEarly", late >= seconds * 1000, "message", Stage.told(m));
                n.incrementAndGet();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        for (int level : new int[] {2, 0, 1, 3}) {
            Message m = Stage.message(topic, "level" + level);
            m.setDelayTimeLevel(level);
            m.setTags("late");
            m.setKeys("d" + level);
            Map<String, Object> sent = Stage.told(s.producer().send(m));
            sent.remove("queueOffset"); // that of its level's queue, which all scenarios share
            s.row("kind", "sent", "result", sent);
            Stage.pause(100);
        }
        Stage.until(() -> n.get() >= 4);
    }

    private static void broadcast(Stage s) throws Exception {
        String topic = s.topic(2);
        AtomicInteger n = new AtomicInteger();
        for (String name : new String[] {"one", "two"}) {
            DefaultMQPushConsumer c = consumer(s, "", n, name);
            Shim.broadcast(c);
            c.subscribe(topic, "*");
            c.start();
            Stage.until(() -> GroupScenarios.owned(c, topic).size() == 2);
        }
        Stage.pause(1500);
        for (int i = 0; i < 6; i++) s.send(topic, i % 2, "b" + i);
        Stage.until(() -> n.get() >= 12);
        Stage.pause(500);
        s.row("kind", "count", "received", n.get());
        s.row("kind", "connection", "model", String.valueOf(s.admin.examineConsumerConnectionInfo(s.group("")).getMessageModel()));
    }
}
