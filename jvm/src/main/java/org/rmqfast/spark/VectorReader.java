package org.rmqfast.spark;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Batches of one piece: the same vectors each time, valid until the next. Alone holds the handle, gives it up once. */
final class VectorReader implements PartitionReader<ColumnarBatch> {
    /** Rust cannot be interrupted: so often Spark gets a word in, to see whether the task was killed. */
    private static final long WAIT_MILLIS = 100;

    private final RustVector[] vectors;
    private final long[] addresses;
    private final RustBatch batch;
    private long handle;
    private boolean isSound = true;
    private long[] counts = new long[SourceMetrics.COUNT];

    VectorReader(StructType schema, long handle) {
        this.handle = handle;
        vectors = RustVector.of(schema);
        addresses = new long[RustVector.addresses(vectors)];
        batch = new RustBatch(vectors, this);
    }

    /** A batch may be empty: Spark looks at its task and asks again. */
    @Override
    public synchronized boolean next() {
        return advance(WAIT_MILLIS) >= 0;
    }

    /** Fills the next batch; its rows, 0 where none came within the wait, -1 at the end. */
    synchronized int advance(long waitMillis) {
        if (handle == 0) {
            return -1;
        }
        isSound = false;    // unless the call returns
        int rows = (int) Native.next(handle, addresses, waitMillis);
        isSound = true;
        batch.setNumRows(Math.max(rows, 0));
        if (rows > 0) {
            int at = 0;
            for (RustVector vector : vectors) {
                at = vector.point(addresses, at);
            }
        }
        return rows;
    }

    /** Makes rows of what the batch has from {@code from} on; how many. Writes where they and their lengths are. */
    synchronized int rows(int from, long[] places) {
        if (handle == 0) {
            throw new IllegalStateException("the reader is closed");
        }
        return Native.rows(handle, from, places);
    }

    /** Next offsets of the queues after so many rows of the batch. */
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
            // Spark asks once more for what it shows, behind the end
            counts = Native.counts(given);
            handle = 0;
            TaskContext task = TaskContext.get();
            boolean isKilled = task != null && (task.isInterrupted() || task.isFailed());
            Native.close(given, isSound && !isKilled);
        }
    }
}
