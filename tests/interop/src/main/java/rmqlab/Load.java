package rmqlab;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A steady load on a broker: so many messages a second, singly and in batches, each with a body "thread-number" and a filling.
 *   Load --namesrv A --topic T [--rate 20000] [--seconds 30] [--threads 4] [--size 100] [--batch 16]
 * One JSON line: what was acknowledged, by thread, and how long a send took.
 */
public final class Load {
    public static void main(String[] args) {
        int code = 1;
        try {
            load(J.opts(args, 0));
            code = 0;
        } catch (Throwable e) {
            e.printStackTrace();
        }
        J.flush();
        Runtime.getRuntime().halt(code);
    }

    private static void load(Map<String, String> o) throws Exception {
        int rate = num(o, "rate", 20000), seconds = num(o, "seconds", 30), threads = num(o, "threads", 4);
        int size = num(o, "size", 100), batch = num(o, "batch", 16);
        DefaultMQProducer p = new DefaultMQProducer("load_producer");
        p.setNamesrvAddr(o.get("namesrv"));
        p.setRetryTimesWhenSendFailed(0);
        p.setSendMsgTimeout(10000);
        p.start();
        String topic = o.get("topic");
        List<MessageQueue> qs = p.fetchPublishMessageQueues(topic);
        AtomicLong failed = new AtomicLong();
        long[] acknowledged = new long[threads];
        long[][] took = new long[threads][];
        Thread[] all = new Thread[threads];
        long start = System.nanoTime(), end = start + seconds * 1_000_000_000L;
        for (int t = 0; t < threads; t++) {
            final int id = t;
            all[t] = new Thread(() -> {
                long[] times = new long[1 << 16];
                int sends = 0;
                long next = start, n = 0;
                while (System.nanoTime() < end) {
                    int count = sends % 4 == 0 ? 1 : batch;
                    List<Message> messages = new ArrayList<>();
                    for (int i = 0; i < count; i++) {
                        String name = id + "-" + (n + i);
                        messages.add(new Message(topic, "t" + (n + i) % 3, name, filled(name, size)));
                    }
                    long before = System.nanoTime();
                    try {
                        MessageQueue q = qs.get(sends % qs.size());
                        if (count == 1) {
                            p.send(messages.get(0), q);
                        } else {
                            p.send(messages, q);
                        }
                        n += count;
                        acknowledged[id] = n;
                    } catch (Exception e) {
                        // A message that may have been stored all the same keeps its number: later ones get others.
                        n += count;
                        failed.addAndGet(count);
                    }
                    if (sends == times.length) {
                        times = Arrays.copyOf(times, 2 * times.length);
                    }
                    times[sends++] = System.nanoTime() - before;
                    next += count * threads * 1_000_000_000L / rate;
                    LockSupport.parkNanos(next - System.nanoTime());
                }
                took[id] = Arrays.copyOf(times, sends);
            });
            all[t].start();
        }
        for (Thread t : all) {
            t.join();
        }
        double elapsed = (System.nanoTime() - start) / 1e9;
        long[] times = Arrays.stream(took).flatMapToLong(Arrays::stream).sorted().toArray();
        long n = Arrays.stream(acknowledged).sum() - failed.get();
        J.out(J.map("messages", n, "failed", failed.get(), "sends", times.length, "seconds", Math.round(elapsed * 10) / 10.0,
            "msgsPerSec", Math.round(n / elapsed), "p50Ms", ms(times, 0.5), "p99Ms", ms(times, 0.99), "maxMs", ms(times, 1)));
        p.shutdown();
    }

    private static int num(Map<String, String> o, String name, int otherwise) {
        return Integer.parseInt(o.getOrDefault(name, String.valueOf(otherwise)));
    }

    private static byte[] filled(String name, int size) {
        byte[] body = Arrays.copyOf((name + " ").getBytes(), Math.max(size, name.length() + 1));
        Arrays.fill(body, name.length() + 1, body.length, (byte) 'x');
        return body;
    }

    private static double ms(long[] sorted, double part) {
        return sorted.length == 0 ? 0 : Math.round(sorted[(int) Math.min(sorted.length - 1, part * sorted.length)] / 1e4) / 100.0;
    }
}
