package org.rmqfast.spark;

import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Writes a DataFrame to a topic, as a batch or as a stream's micro-batches. Each row is sent at least once. */
final class TopicWrite implements Write, BatchWrite, StreamingWrite {
    private static final Logger LOG = LoggerFactory.getLogger("rmqfast.spark");

    private final String[] options;
    private final String topic;
    private final StructType schema;
    private final int[] places;

    /** Checks options and columns before anything is sent. */
    TopicWrite(String[] options, String topic, StructType schema) {
        this.options = options;
        this.topic = topic == null ? "of each row" : topic;
        this.schema = schema;
        places = NativeSink.columns(options, TopicFields.texts(schema));
    }

    @Override
    public String description() {
        return "rocketmq-columnar topic " + topic;
    }

    @Override
    public BatchWrite toBatch() {
        NativeSink.check(options, TopicFields.texts(schema), TopicRows.month());
        return this;
    }

    /** Does not check the topic, since a stream may start before its topic exists. */
    @Override
    public StreamingWrite toStreaming() {
        return this;
    }

    @Override
    public TopicWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
        return new TopicWriterFactory(options, schema, places);
    }

    @Override
    public TopicWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
        return new TopicWriterFactory(options, schema, places);
    }

    /** Declared by both BatchWrite and StreamingWrite, so it must be overridden. */
    @Override
    public boolean useCommitCoordinator() {
        return true;
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
        LOG.info("topic {}: {}", topic, TopicWritten.total(messages));
    }

    @Override
    public void commit(long batch, WriterCommitMessage[] messages) {
        LOG.info("batch {}, topic {}: {}", batch, topic, TopicWritten.total(messages));
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
        LOG.warn("topic {}: the job failed; its tasks that ended well sent {}, which stay", topic,
                TopicWritten.total(messages));
    }

    @Override
    public void abort(long batch, WriterCommitMessage[] messages) {
        LOG.warn("batch {}, topic {}: the job failed; its tasks that ended well sent {}, which stay", batch, topic,
                TopicWritten.total(messages));
    }
}
