package rmqlab;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Several consumers in a group: who gets which queues, locks, and offsets that are put back under a consumer. */
final class GroupScenarios {
    static void add(Map<String, Scenario.Play> m) {
        m.put("reset", GroupScenarios::reset);
        m.put("handover", GroupScenarios::handOver);
        m.put("rebalance", GroupScenarios::rebalance);
    }

    static List<Integer> owned(DefaultMQPushConsumer c, String topic) {
        List<Integer> l = new ArrayList<>();
        for (MessageQueue q : c.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet()) if (q.getTopic().equals(topic)) l.add(q.getQueueId());
        Collections.sort(l);
        return l;
    }

    private static boolean own(DefaultMQPushConsumer c, String topic, int... queues) {
        List<Integer> want = new ArrayList<>();
        for (int q : queues) want.add(q);
        return owned(c, topic).equals(want);
    }

    private static void rebalance(Stage s) throws Exception {
        String topic = s.topic(4);
        AtomicInteger n = new AtomicInteger();
        Set<String> seen = ConcurrentHashMap.newKeySet(); // what changes hands before its offset is with the broker comes twice
        DefaultMQPushConsumer[] c = new DefaultMQPushConsumer[2];
        for (int i = 0; i < 2; i++) {
            String name = "c" + i;
            c[i] = s.push(s.group(""), name);
            c[i].subscribe(topic, "*");
            c[i].registerMessageListener((MessageListenerConcurrently) (ms, x) -> {
                for (MessageExt m : ms) {
                    if (!seen.add(Stage.text(m))) continue;
                    s.row("kind", "received", "by", name, "queue", m.getQueueId(), "body", Stage.text(m));
                    n.incrementAndGet();
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        c[0].start();
        s.row("kind", "alone", "all", Stage.until(() -> own(c[0], topic, 0, 1, 2, 3)));
        for (int i = 0; i < 4; i++) s.send(topic, i, "alone" + i);
        Stage.until(() -> n.get() >= 4);
        Stage.pause(300);
        c[1].start();
        s.row("kind", "both", "halves", Stage.until(() -> own(c[0], topic, 0, 1) && own(c[1], topic, 2, 3)));
        s.row("kind", "connections", "count", s.admin.examineConsumerConnectionInfo(s.group("")).getConnectionSet().size());
        for (int i = 0; i < 4; i++) s.send(topic, i, "both" + i);
        Stage.until(() -> n.get() >= 8);
        Stage.pause(300);
        c[0].shutdown();
        s.row("kind", "left", "all", Stage.until(() -> own(c[1], topic, 0, 1, 2, 3)));
        for (int i = 0; i < 4; i++) s.send(topic, i, "left" + i);
        Stage.until(() -> n.get() >= 12);
        Stage.pause(500);
        s.row("kind", "count", "received", n.get());
        c[1].shutdown();
        PushScenarios.offsets(s, s.group(""), topic);
    }

    /** The queues of an orderly consumer are locked: another gets its half when they are let go, and order stays. */
    private static void handOver(Stage s) throws Exception {
        String topic = s.topic(4);
        Map<Integer, List<Integer>> seen = new ConcurrentHashMap<>();
        AtomicInteger n = new AtomicInteger();
        DefaultMQPushConsumer[] c = new DefaultMQPushConsumer[2];
        for (int i = 0; i < 2; i++) {
            c[i] = s.push(s.group(""), "c" + i);
            c[i].setConsumeThreadMin(4);
            c[i].setConsumeThreadMax(4);
            c[i].subscribe(topic, "*");
            c[i].registerMessageListener((MessageListenerOrderly) (ms, x) -> {
                Stage.pause(20);
                for (MessageExt m : ms) {
                    List<Integer> of = seen.computeIfAbsent(m.getQueueId(), k -> Collections.synchronizedList(new ArrayList<>()));
                    int number = Integer.parseInt(Stage.text(m));
                    if (!of.contains(number)) n.incrementAndGet();
                    of.add(number);
                }
                return ConsumeOrderlyStatus.SUCCESS;
            });
        }
        c[0].start();
        Stage.until(() -> own(c[0], topic, 0, 1, 2, 3));
        for (int i = 0; i < 200; i++) s.send(topic, i % 4, String.valueOf(i));
        c[1].start();
        boolean halves = Stage.until(() -> own(c[0], topic, 0, 1) && own(c[1], topic, 2, 3));
        Stage.until(() -> n.get() >= 200);
        s.row("kind", "both", "halves", halves, "received", n.get());
        for (Map.Entry<Integer, List<Integer>> e : new TreeMap<>(seen).entrySet()) {
            List<Integer> first = new ArrayList<>();
            for (int number : e.getValue()) if (!first.contains(number)) first.add(number);
            List<Integer> sorted = new ArrayList<>(first);
            Collections.sort(sorted);
            s.row("kind", "queue", "id", e.getKey(), "messages", first.size(), "inOrder", first.equals(sorted));
        }
    }

    private static void reset(Stage s) throws Exception {
        String topic = s.topic(2);
        Map<String, Integer> times = new HashMap<>();
        DefaultMQPushConsumer c = s.push(s.group(""), "c");
        c.subscribe(topic, "*");
        c.registerMessageListener((MessageListenerConcurrently) (ms, x) -> {
            synchronized (times) {
                for (MessageExt m : ms) times.merge(Stage.text(m), 1, Integer::sum);
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        for (int i = 0; i < 8; i++) s.send(topic, i % 2, "r" + i);
        Stage.until(() -> sum(times) >= 8);
        s.row("kind", "persisted", "all", s.persisted(s.group(""), topic, 8));
        Map<String, Long> told = new TreeMap<>();
        s.admin.resetOffsetByTimestamp(topic, s.group(""), 0, true).forEach((q, at) -> told.put(q.getTopic() + " " + q.getQueueId(), at));
        s.row("kind", "reset", "offsets", told);
        Stage.until(() -> sum(times) >= 16);
        Stage.pause(500);
        synchronized (times) {
            s.row("kind", "received", "times", new TreeMap<>(times));
        }
        c.shutdown();
        PushScenarios.offsets(s, s.group(""), topic);
    }

    private static int sum(Map<String, Integer> times) {
        synchronized (times) {
            return times.values().stream().mapToInt(i -> i).sum();
        }
    }
}
