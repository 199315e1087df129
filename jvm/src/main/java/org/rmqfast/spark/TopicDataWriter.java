package org.rmqfast.spark;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sends the rows of a partition. After a commit, brokers have stored all of them. */
final class TopicDataWriter implements DataWriter<InternalRow> {
    private static final Logger LOG = LoggerFactory.getLogger("rmqfast.spark");

    private final TopicFields fields;
    private final TopicRows rows;
    private final int partition;
    private final long began = System.nanoTime();

    TopicDataWriter(TopicFields fields, TopicRows rows, int partition) {
        this.fields = fields;
        this.rows = rows;
        this.partition = partition;
    }

    @Override
    public void write(InternalRow row) {
        fields.write(row, rows);
    }

    @Override
    public WriterCommitMessage commit() {
        TopicWritten written = new TopicWritten(rows.finish());
        TaskContext task = TaskContext.get();
        LOG.info("partition {}, attempt {}: {}, {} ms", partition, task == null ? 0 : task.attemptNumber(), written,
                (System.nanoTime() - began) / 1_000_000);
        // the broker's disk or slave was late: the rows are stored, so this is a warning and not an error
        if (written.lessSafe() > 0) {
            LOG.warn("partition {}: {} requests are stored less safely than asked for", partition, written.lessSafe());
        }
        return written;
    }

    @Override
    public void abort() {
        rows.close();
    }

    @Override
    public void close() {
        rows.close();
    }
}
