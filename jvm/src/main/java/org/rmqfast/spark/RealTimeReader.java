package org.rmqfast.spark;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;

/** Rows of a piece without an end, one by one, as they come. Spark has its interface from 4.1 on: before, nobody loads this. */
final class RealTimeReader implements SupportsRealTimeRead<InternalRow> {
    private static final long WAIT_MILLIS = 100;

    /** Next offsets of a piece's queues, as offsets of a checkpoint. */
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
    /** The row of the batch that is handed out. */
    private int row = -1;
    private int rows;

    RealTimeReader(VectorReader reader) {
        this.reader = reader;
    }

    /** Of Spark 4.1. */
    public RecordStatus nextWithTimeout(Long timeoutMillis) {
        return nextWithTimeout(null, timeoutMillis);
    }

    /** Of Spark 4.2 and newer. */
    public RecordStatus nextWithTimeout(Long startMillis, Long timeoutMillis) {
        if (++row < rows) {
            return RecordStatus.newStatusWithoutArrivalTime(true);
        }
        long until = System.nanoTime() + timeoutMillis * 1_000_000;
        do {
            long left = (until - System.nanoTime()) / 1_000_000;
            // Rust cannot be interrupted
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

    /** Spark asks with a timeout; this is for whoever does not. */
    @Override
    public boolean next() {
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
