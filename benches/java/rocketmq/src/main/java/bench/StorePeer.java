package bench;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.Random;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.filter.FilterAPI;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.store.DefaultMessageFilter;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.MessageFilter;
import org.apache.rocketmq.store.PutMessageStatus;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * RocketMQ's DefaultMessageStore, timed in its own process. One tab-separated request per line of standard input, one
 * JSON line per answer, so that a driver can alternate engines while the JVM stays warm:
 *   open    DIR                     opens the store that the reads go to
 *   decoded TOPIC QUEUES            getMessage in batches of 1024 over every queue, each message decoded
 *   tagged  TOPIC QUEUES TAG        the same through a tag filter
 *   recover DIR                     load and start of a store that was left, until every message is dispatched
 *   append  DIR TOPIC QUEUES BODY COUNT   putMessage on one thread into a new store, asynchronous flush, indexed keys
 */
public final class StorePeer {
    private static final PrintStream OUT = System.out;
    private static final int BATCH = 1024;
    private static DefaultMessageStore open;

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

    private static String answer(String[] request) throws Exception {
        switch (request[0]) {
            case "open":
                open = store(new File(request[1]));
                return "{\"rows\": 0, \"seconds\": 0}";
            case "decoded":
                return read(request[1], Integer.parseInt(request[2]), null);
            case "tagged":
                return read(request[1], Integer.parseInt(request[2]), request[3]);
            case "recover":
                return recover(new File(request[1]));
            case "append":
                return append(new File(request[1]), request[2], Integer.parseInt(request[3]),
                    Integer.parseInt(request[4]), Integer.parseInt(request[5]));
            default:
                throw new IllegalArgumentException(request[0]);
        }
    }

    private static DefaultMessageStore store(File dir) throws Exception {
        MessageStoreConfig c = new MessageStoreConfig();
        c.setStorePathRootDir(dir.getPath());
        c.setStorePathCommitLog(new File(dir, "commitlog").getPath());
        c.setHaListenPort(0);
        c.setFileReservedTime(87600);
        c.setDiskMaxUsedSpaceRatio(95);
        // the defaults (32 and 8 messages per call) would time the calls
        c.setMaxTransferCountOnMessageInMemory(4096);
        c.setMaxTransferBytesOnMessageInMemory(8 << 20);
        c.setMaxTransferCountOnMessageInDisk(4096);
        c.setMaxTransferBytesOnMessageInDisk(8 << 20);
        DefaultMessageStore s = new DefaultMessageStore(c, new BrokerStatsManager("bench", false),
            (topic, queue, offset, code, time, map, properties) -> { }, new BrokerConfig());
        if (!s.load()) throw new IllegalStateException("the store does not load: " + dir);
        s.start();
        return s;
    }

    private static String read(String topic, int queues, String tag) throws Exception {
        MessageFilter filter = tag == null ? null : new DefaultMessageFilter(FilterAPI.buildSubscriptionData(topic, tag));
        long rows = 0, returned = 0, bytes = 0, begin = System.nanoTime();
        for (int queue = 0; queue < queues; queue++) {
            long max = open.getMaxOffsetInQueue(topic, queue);
            for (long offset = 0; offset < max; ) {
                GetMessageResult got = open.getMessage("bench", topic, queue, offset, BATCH, filter);
                for (ByteBuffer message : got.getMessageBufferList()) {
                    bytes += MessageDecoder.decode(message.slice(), true, false).getBody().length;
                    returned++;
                }
                long next = got.getNextBeginOffset();
                got.release();
                if (next <= offset) throw new IllegalStateException(got.getStatus() + " at " + topic + " " + queue + " " + offset);
                rows += next - offset;
                offset = next;
            }
        }
        return figures(rows, System.nanoTime() - begin, "\"returned\": " + returned + ", \"body_bytes\": " + bytes);
    }

    private static String recover(File dir) throws Exception {
        long begin = System.nanoTime();
        DefaultMessageStore s = store(dir);
        while (s.dispatchBehindBytes() > 0) Thread.sleep(1);
        long nanos = System.nanoTime() - begin, end = s.getMaxPhyOffset();
        s.shutdown();
        // unmaps the files: deleted ones would stay in memory and on the disk
        s.destroy();
        return figures(0, nanos, "\"log_end\": " + end);
    }

    private static String append(File dir, String topic, int queues, int size, int count) throws Exception {
        byte[] body = new byte[size];
        new Random(1).nextBytes(body);
        DefaultMessageStore s = store(dir);
        InetSocketAddress host = new InetSocketAddress("127.0.0.1", 10911);
        long begin = System.nanoTime();
        for (int row = 0; row < count; row++) put(s, message(topic, row, row % queues, body, host));
        long put = System.nanoTime();
        while (s.dispatchBehindBytes() > 0) Thread.sleep(1);
        long dispatched = System.nanoTime();
        long queued = 0;
        for (int queue = 0; queue < queues; queue++) queued += s.getMaxOffsetInQueue(topic, queue);
        if (queued != count) throw new IllegalStateException("expected " + count + " queued messages, got " + queued);
        if (s.queryMessage(topic, key(count / 2), 8, 0, Long.MAX_VALUE).getMessageBufferList().isEmpty()) {
            throw new IllegalStateException("the index misses " + key(count / 2));
        }
        s.shutdown();
        // unmaps the files: deleted ones would stay in memory and on the disk
        s.destroy();
        return figures(count, put - begin, "\"seconds_dispatched\": " + (dispatched - begin) / 1e9);
    }

    private static MessageExtBrokerInner message(String topic, int row, int queue, byte[] body, InetSocketAddress host) {
        MessageExtBrokerInner m = new MessageExtBrokerInner();
        String tag = row % 100 < 10 ? "tag0" + row % 100 : "tag" + row % 100;
        m.setTopic(topic);
        m.setQueueId(queue);
        m.setBody(body);
        m.setKeys(key(row));
        MessageAccessor.putProperty(m, "UNIQ_KEY", "7F0000011A2B18B4AAC2" + padded(Integer.toHexString(row).toUpperCase(), 12));
        MessageAccessor.putProperty(m, "WAIT", "true");
        m.setTags(tag);
        m.setBornTimestamp(System.currentTimeMillis());
        m.setBornHost(host);
        m.setStoreHost(host);
        m.setPropertiesString(MessageDecoder.messageProperties2String(m.getProperties()));
        m.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(null, tag));
        return m;
    }

    private static void put(DefaultMessageStore s, MessageExtBrokerInner m) throws Exception {
        PutMessageStatus status = s.putMessage(m).getPutMessageStatus();
        while (status == PutMessageStatus.OS_PAGECACHE_BUSY) {
            Thread.sleep(1);
            status = s.putMessage(m).getPutMessageStatus();
        }
        if (status != PutMessageStatus.PUT_OK) throw new IllegalStateException("putMessage: " + status);
    }

    private static String key(int row) {
        return "tag00-" + padded(Integer.toString(row), 11);
    }

    private static String padded(String digits, int width) {
        return "0".repeat(width - digits.length()) + digits;
    }

    private static String figures(long rows, long nanos, String more) {
        return "{\"rows\": " + rows + ", \"seconds\": " + nanos / 1e9 + ", " + more + "}";
    }

    private StorePeer() { }
}
