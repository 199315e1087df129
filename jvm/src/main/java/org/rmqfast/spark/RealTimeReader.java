package org.rmqfast.spark;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;

/** Returns rows of a piece without an end, one by one. Loaded only in Spark 4.1 and newer, which have the interface. */
final class RealTimeReader implements SupportsRealTimeRead<InternalRow> {
    private static final long WAIT_MILLIS = 100;

    /** The next offset of each of the piece's queues, in the form of a checkpoint. */
    static final class Position implements PartitionOffset {
        private static final long serialVersionUID = 1;

        private final String json;

        Position(String json) {
            this.json = json;
        }

        String json() {
            return json;
        }
    }

    private final VectorReader reader;
    /** Index of the current row in the batch. */
    private int row = -1;
    private int rows;

    RealTimeReader(VectorReader reader) {
        this.reader = reader;
    }

    /** The method of Spark 4.1. */
    public RecordStatus nextWithTimeout(Long timeoutMillis) {
        return nextWithTimeout(null, timeoutMillis);
    }

    /** The method of Spark 4.2 and newer. */
    public RecordStatus nextWithTimeout(Long startMillis, Long timeoutMillis) {
        if (++row < rows) {
            return RecordStatus.newStatusWithoutArrivalTime(true);
        }
        long until = System.nanoTime() + timeoutMillis * 1_000_000;
        do {
            long left = (until - System.nanoTime()) / 1_000_000;
            // waits in short slices, since Spark cannot interrupt Rust
            rows = Math.max(0, reader.advance(Math.max(0, Math.min(WAIT_MILLIS, left))));
            row = 0;
            if (rows > 0) {
                return RecordStatus.newStatusWithoutArrivalTime(true);
            }
            TaskContext task = TaskContext.get();
            if (task != null) {
                task.killTaskIfInterrupted();
            }
        } while (System.nanoTime() < until);
        return RecordStatus.newStatusWithoutArrivalTime(false);
    }

    /** Spark calls the methods with a timeout; this method is only for other callers. */
    @Override
    public boolean next() {
        // half of the maximum, so that adding the time does not overflow
        return nextWithTimeout(null, Long.MAX_VALUE / 2_000_000).hasRecord();
    }

    @Override
    public InternalRow get() {
        return reader.get().getRow(row);
    }

    @Override
    public PartitionOffset getOffset() {
        return new Position(reader.position(Math.min(row + 1, rows)));
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return reader.currentMetricsValues();
    }

    @Override
    public void close() {
        reader.close();
    }
}
