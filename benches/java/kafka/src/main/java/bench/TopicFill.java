package bench;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Copies a store's commit log into a Kafka topic: partition = queue, key = KEYS, value = body, header TAGS, no compression.
 *   TopicFill BOOTSTRAP TOPIC PARTITIONS STORE_DIR
 */
public final class TopicFill {
    private static final int MESSAGE = 0xDAA320A7;
    private static final AtomicReference<Exception> FAILED = new AtomicReference<>();

    public static void main(String[] args) throws Exception {
        create(args[0], args[1], Integer.parseInt(args[2]));
        Map<String, Object> options = Map.of("bootstrap.servers", args[0], "acks", "1", "compression.type", "none",
            "linger.ms", "20", "batch.size", String.valueOf(256 << 10), "buffer.memory", String.valueOf(128 << 20),
            "max.request.size", String.valueOf(8 << 20));
        long begin = System.nanoTime(), rows = 0;
        try (var producer = new KafkaProducer<>(options, new ByteArraySerializer(), new ByteArraySerializer())) {
            File[] segments = new File(args[3], "commitlog").listFiles();
            Arrays.sort(segments);
            for (File segment : segments) rows += copy(segment, args[1], producer);
        }
        if (FAILED.get() != null) throw FAILED.get();
        System.out.println("{\"rows\": " + rows + ", \"seconds\": " + (System.nanoTime() - begin) / 1e9 + "}");
    }

    private static void create(String bootstrap, String topic, int partitions) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            // the messages' own timestamps are old: nothing may expire
            var options = Map.of("retention.ms", "-1", "compression.type", "producer");
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1).configs(options))).all().get();
        }
    }

    private static long copy(File segment, String topic, KafkaProducer<byte[], byte[]> producer) throws Exception {
        long rows = 0;
        try (FileChannel channel = FileChannel.open(segment.toPath(), StandardOpenOption.READ)) {
            MappedByteBuffer log = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            for (int at = 0; at + 8 <= log.limit() && log.getInt(at + 4) == MESSAGE; at += log.getInt(at)) {
                producer.send(record(log, at, topic), (metadata, e) -> {
                    if (e != null) FAILED.compareAndSet(null, e);
                });
                rows++;
            }
        }
        return rows;
    }

    /** The record of an IPv4 message of version 1. */
    private static ProducerRecord<byte[], byte[]> record(ByteBuffer log, int at, String topic) {
        int bodySize = log.getInt(at + 84), topicAt = at + 88 + bodySize, propertiesAt = topicAt + 1 + log.get(topicAt);
        byte[] body = bytes(log, at + 88, bodySize);
        String properties = new String(bytes(log, propertiesAt + 2, log.getShort(propertiesAt)), StandardCharsets.UTF_8);
        List<Header> headers = List.of(new RecordHeader("TAGS", value(properties, "TAGS")));
        return new ProducerRecord<>(topic, log.getInt(at + 12), log.getLong(at + 40), value(properties, "KEYS"), body, headers);
    }

    private static byte[] bytes(ByteBuffer log, int at, int size) {
        byte[] out = new byte[size];
        log.get(at, out);
        return out;
    }

    private static byte[] value(String properties, String name) {
        int from = properties.indexOf(name + '\1') + name.length() + 1, to = properties.indexOf('\2', from);
        return properties.substring(from, to < 0 ? properties.length() : to).getBytes(StandardCharsets.UTF_8);
    }

    private TopicFill() { }
}
