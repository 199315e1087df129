package rmqlab;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Starts push consumers of a topic that has messages, each a group and a client of its own; one JSON line each.
 *   FirstMessage --namesrv A --topic T --prefix P [--first 0] [--starts 10] [--together 1] [--expr '*'] [--patience-s 70]
 * A line has the milliseconds from start() to the first message, those of each heartbeat from the request to its answer,
 * and how many pulls were refused as the subscription of the broker is not the newest.
 */
public final class FirstMessage {
    private static final int HEART_BEAT = 34, SUBSCRIPTION_NOT_LATEST = 25;

    public static void main(String[] args) throws Exception {
        Map<String, String> o = J.opts(args, 0);
        int first = Integer.parseInt(o.getOrDefault("first", "0")), starts = Integer.parseInt(o.getOrDefault("starts", "10"));
        ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(o.getOrDefault("together", "1")));
        for (int i = first; i < first + starts; i++) {
            String name = o.get("prefix") + i;
            pool.submit(() -> {
                try {
                    J.out(started(name, o));
                } catch (Throwable e) {
                    J.out(J.map("group", name, "failed", String.valueOf(e)));
                }
            });
        }
        pool.shutdown();
        boolean ended = pool.awaitTermination(1, TimeUnit.HOURS);
        J.flush();
        Runtime.getRuntime().halt(ended ? 0 : 1);
    }

    private static Map<String, Object> started(String name, Map<String, String> o) throws Exception {
        Requests requests = new Requests();
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(name, requests, new AllocateMessageQueueAveragely());
        CountDownLatch first = new CountDownLatch(1);
        c.setInstanceName(name);
        c.setNamesrvAddr(o.get("namesrv"));
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(o.get("topic"), o.getOrDefault("expr", "*"));
        c.registerMessageListener((MessageListenerConcurrently) (ms, x) -> {
            first.countDown();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        long begin = System.nanoTime();
        c.start();
        boolean came = first.await(Long.parseLong(o.getOrDefault("patience-s", "70")), TimeUnit.SECONDS);
        double millis = millisSince(begin);
        c.shutdown();
        return J.map("group", name, "firstMessage", came ? millis : null, "heartbeats", List.copyOf(requests.heartbeats), "refused", requests.refused.get());
    }

    private static double millisSince(long begin) {
        return (System.nanoTime() - begin) / 10_000 / 100.0;
    }

    /** What a client asked: its heartbeats, and refused pulls. */
    private static final class Requests implements RPCHook {
        final List<Double> heartbeats = Collections.synchronizedList(new ArrayList<>());
        final AtomicInteger refused = new AtomicInteger();
        private final Map<Integer, Long> begins = new ConcurrentHashMap<>();

        @Override
        public void doBeforeRequest(String address, RemotingCommand request) {
            if (request.getCode() == HEART_BEAT) begins.put(request.getOpaque(), System.nanoTime());
        }

        @Override
        public void doAfterResponse(String address, RemotingCommand request, RemotingCommand response) {
            Long begin = begins.remove(request.getOpaque());
            if (begin != null) heartbeats.add(millisSince(begin));
            if (response != null && response.getCode() == SUBSCRIPTION_NOT_LATEST) refused.incrementAndGet();
        }
    }

    private FirstMessage() { }
}
