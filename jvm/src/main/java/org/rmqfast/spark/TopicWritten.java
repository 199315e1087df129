package org.rmqfast.spark;

import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Counts of sent rows, of one task or of all tasks. */
final class TopicWritten implements WriterCommitMessage {
    private static final long serialVersionUID = 1;
    private static final int LESS_SAFE = 4;

    private final long[] counts;

    TopicWritten(long[] counts) {
        this.counts = counts;
    }

    long lessSafe() {
        return counts[LESS_SAFE];
    }

    /** Sums the counts. The message of a failed task is null. */
    static TopicWritten total(WriterCommitMessage[] messages) {
        long[] sum = new long[LESS_SAFE + 1];
        for (WriterCommitMessage message : messages) {
            for (int i = 0; message != null && i < sum.length; i++) {
                sum[i] += ((TopicWritten) message).counts[i];
            }
        }
        return new TopicWritten(sum);
    }

    @Override
    public String toString() {
        return NativeSink.text(counts);
    }
}
