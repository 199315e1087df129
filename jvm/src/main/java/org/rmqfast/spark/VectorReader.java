package org.rmqfast.spark;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads a piece in batches. Reuses its vectors for each batch. Owns the native handle and frees it exactly once. */
final class VectorReader implements PartitionReader<ColumnarBatch> {
    /** Longest wait of a native call, after which Spark checks whether the task was killed; it cannot interrupt Rust. */
    private static final long WAIT_MILLIS = 100;

    private final ColumnVector[] vectors;
    private final long[] addresses;
    private final RustBatch batch;
    private long handle;
    private boolean isSound = true;
    private long[] counts = new long[SourceMetrics.COUNT];

    VectorReader(StructType schema, long handle) {
        this.handle = handle;
        vectors = RustVector.of(schema);
        int count = 0;
        for (ColumnVector vector : vectors) {
            count += ((NativeVector) vector).addresses();
        }
        addresses = new long[count];
        batch = new RustBatch(vectors, this);
    }

    /** Returns true also for an empty batch, so that Spark checks its task and calls again. */
    @Override
    public synchronized boolean next() {
        return advance(WAIT_MILLIS) >= 0;
    }

    /** Fills the next batch and returns its rows; 0 if none arrived within the wait, -1 at the end. */
    synchronized int advance(long waitMillis) {
        if (handle == 0) {
            return -1;
        }
        isSound = false;    // stays false if the call throws
        int rows = (int) Native.next(handle, addresses, waitMillis);
        isSound = true;
        batch.setNumRows(Math.max(rows, 0));
        if (rows > 0) {
            int at = 0;
            for (ColumnVector vector : vectors) {
                at = ((NativeVector) vector).point(addresses, at);
            }
        }
        return rows;
    }

    /** Converts rows of the batch from {@code from} on and returns how many; writes the addresses of rows and lengths. */
    synchronized int rows(int from, long[] places) {
        if (handle == 0) {
            throw new IllegalStateException("the reader is closed");
        }
        return Native.rows(handle, from, places);
    }

    /** Returns the queues' next offsets after the first rows of the batch. */
    synchronized String position(int rows) {
        if (handle == 0) {
            throw new IllegalStateException("the reader is closed");
        }
        return Native.position(handle, rows);
    }

    @Override
    public ColumnarBatch get() {
        return batch;
    }

    @Override
    public synchronized CustomTaskMetric[] currentMetricsValues() {
        if (handle != 0) {
            counts = Native.counts(handle);
        }
        return SourceMetrics.values(counts);
    }

    @Override
    public synchronized void close() {
        long given = handle;
        if (given != 0) {
            // Spark asks for the metrics once more after closing
            counts = Native.counts(given);
            handle = 0;
            TaskContext task = TaskContext.get();
            // a killed task may leave requests in flight, so its connection is not kept
            boolean isKilled = task != null && (task.isInterrupted() || task.isFailed());
            Native.close(given, isSound && !isKilled);
        }
    }
}
