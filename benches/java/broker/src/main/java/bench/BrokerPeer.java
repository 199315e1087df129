package bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * RocketMQ's Java clients against one broker. One tab-separated request per line of standard input, one JSON line per
 * answer, so that a driver can alternate brokers while the JVM stays warm:
 *   connect NAMESRV
 *   sync  TOPIC BODY COUNT THREADS        send, each waits for its answer
 *   async TOPIC BODY COUNT WINDOW         so many in flight
 *   batch TOPIC BODY COUNT SIZE           so many messages in a request
 *   paced TOPIC BODY COUNT THREADS RATE   sync sends at a given rate; "seconds" is their 99th percentile, "rows" 1
 *   pull  TOPIC BATCH                     every queue from its first offset to its last
 *   push  TOPIC BATCH                     a new group, from start() until all messages were seen
 *   first                                 a push consumer, then its topic's first send: until the listener has the message
 *   start                                 a lite pull consumer, from start() until it gave a message
 */
public final class BrokerPeer {
    private static final PrintStream OUT = System.out;
    private static String namesrv;
    private static DefaultMQProducer producer;
    private static DefaultMQPullConsumer puller;

    public static void main(String[] args) throws Exception {
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = answer(line.split("\t"));
            } catch (Throwable e) {
                e.printStackTrace();
                answer = "{\"error\": \"" + e.toString().replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\"}";
            }
            OUT.println(answer);
            OUT.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static String answer(String[] r) throws Exception {
        switch (r[0]) {
            case "connect": return connect(r[1]);
            case "sync": return sync(r[1], number(r[2]), number(r[3]), number(r[4]));
            case "async": return async(r[1], number(r[2]), number(r[3]), number(r[4]));
            case "batch": return batch(r[1], number(r[2]), number(r[3]), number(r[4]));
            case "paced": return paced(r[1], number(r[2]), number(r[3]), number(r[4]), number(r[5]));
            case "pull": return pull(r[1], number(r[2]));
            case "push": return push(r[1], number(r[2]));
            default: throw new IllegalArgumentException(r[0]);
        }
    }

    private static int number(String text) {
        return Integer.parseInt(text);
    }

    private static String connect(String address) throws Exception {
        namesrv = address;
        producer = new DefaultMQProducer("bench_producer");
        producer.setNamesrvAddr(namesrv);
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        producer.setSendMsgTimeout(10000);
        producer.setRetryTimesWhenSendFailed(0);
        producer.setRetryTimesWhenSendAsyncFailed(0);
        producer.start();
        puller = new DefaultMQPullConsumer("bench_pull");
        puller.setNamesrvAddr(namesrv);
        puller.start();
        return "{\"rows\": 0, \"seconds\": 0}";
    }

    private static String told(long rows, long nanos) {
        return "{\"rows\": " + rows + ", \"seconds\": " + nanos / 1e9 + "}";
    }

    private static byte[] body(int size) {
        byte[] body = new byte[size];
        new Random(1).nextBytes(body);
        return body;
    }

    interface Work {
        void run(int thread) throws Exception;
    }

    /** Nanoseconds that so many threads take together; what one of them throws is thrown. */
    private static long threads(int count, Work work) throws Exception {
        Thread[] all = new Thread[count];
        Throwable[] failed = new Throwable[1];
        long begin = System.nanoTime();
        for (int t = 0; t < count; t++) {
            final int id = t;
            all[t] = new Thread(() -> {
                try {
                    work.run(id);
                } catch (Throwable e) {
                    failed[0] = e;
                }
            });
            all[t].start();
        }
        for (Thread t : all) t.join();
        if (failed[0] != null) throw new IllegalStateException(failed[0]);
        return System.nanoTime() - begin;
    }

    private static String sync(String topic, int size, int count, int threads) throws Exception {
        byte[] body = body(size);
        long nanos = threads(threads, id -> {
            for (int i = 0; i < count / threads; i++) producer.send(new Message(topic, "t" + i % 100, body));
        });
        return told(count / threads * threads, nanos);
    }

    private static String async(String topic, int size, int count, int window) throws Exception {
        byte[] body = body(size);
        List<MessageQueue> queues = producer.fetchPublishMessageQueues(topic);
        Semaphore free = new Semaphore(window), answered = new Semaphore(0);
        AtomicLong failed = new AtomicLong();
        long begin = System.nanoTime();
        for (int i = 0; i < count; i++) {
            free.acquire();
            producer.send(new Message(topic, "t" + i % 100, body), queues.get(i % queues.size()), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    free.release();
                    answered.release();
                }

                @Override
                public void onException(Throwable e) {
                    failed.incrementAndGet();
                    onSuccess(null);
                }
            });
        }
        answered.acquire(count);
        if (failed.get() > 0) throw new IllegalStateException(failed + " sends failed");
        return told(count, System.nanoTime() - begin);
    }

    private static String batch(String topic, int size, int count, int together) throws Exception {
        byte[] body = body(size);
        long begin = System.nanoTime();
        for (int i = 0; i < count; i += together) {
            List<Message> messages = new ArrayList<>(together);
            for (int k = 0; k < together; k++) messages.add(new Message(topic, "t" + k % 100, body));
            producer.send(messages);
        }
        return told((count + together - 1) / together * together, System.nanoTime() - begin);
    }

    private static String paced(String topic, int size, int count, int threads, int rate) throws Exception {
        byte[] body = body(size);
        long[] took = new long[count / threads * threads];
        long start = System.nanoTime(), step = 1_000_000_000L * threads / rate;
        long nanos = threads(threads, id -> {
            for (int i = 0; i < count / threads; i++) {
                long due = start + i * step + id * step / threads;
                LockSupport.parkNanos(due - System.nanoTime());
                // from the time it was due, so that one that waits for another counts as late
                producer.send(new Message(topic, "t" + i % 100, body));
                took[id * (count / threads) + i] = System.nanoTime() - due;
            }
        });
        Arrays.sort(took);
        return "{\"rows\": 1, \"seconds\": " + took[took.length * 99 / 100] / 1e9 + ", \"median\": " + took[took.length / 2] / 1e9
            + ", \"rate\": " + took.length * 1e9 / nanos + "}";
    }

    private static String pull(String topic, int batch) throws Exception {
        long rows = 0, begin = System.nanoTime();
        for (MessageQueue q : new TreeSet<>(puller.fetchSubscribeMessageQueues(topic))) {
            for (long at = puller.minOffset(q), max = puller.maxOffset(q); at < max; ) {
                PullResult r = puller.pull(q, "*", at, batch);
                if (r.getPullStatus() != PullStatus.FOUND) throw new IllegalStateException(r.getPullStatus() + " at " + at);
                rows += r.getMsgFoundList().size();
                at = r.getNextBeginOffset();
            }
        }
        return told(rows, System.nanoTime() - begin);
    }

    private static String push(String topic, int batch) throws Exception {
        long total = 0;
        for (MessageQueue q : puller.fetchSubscribeMessageQueues(topic)) total += puller.maxOffset(q) - puller.minOffset(q);
        final long want = total;
        DefaultMQPushConsumer c = new DefaultMQPushConsumer("bench_push_" + System.nanoTime());
        c.setNamesrvAddr(namesrv);
        c.setInstanceName("push" + System.nanoTime());
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setPullBatchSize(batch);
        c.setConsumeMessageBatchMaxSize(batch);
        c.subscribe(topic, "*");
        AtomicLong seen = new AtomicLong(), end = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        c.registerMessageListener((MessageListenerConcurrently) (messages, x) -> {
            if (seen.addAndGet(messages.size()) >= want && end.compareAndSet(0, System.nanoTime())) done.countDown();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        long begin = System.nanoTime();
        c.start();
        boolean all = done.await(120, TimeUnit.SECONDS);
        c.shutdown();
        if (!all) throw new IllegalStateException("saw " + seen + " of " + want);
        return told(want, end.get() - begin);
    }
}
