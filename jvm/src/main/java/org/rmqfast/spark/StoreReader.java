package org.rmqfast.spark;

import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Batches of one partition: the same vectors each time, valid until the next. Alone holds the handle, gives it up once. */
final class StoreReader implements PartitionReader<ColumnarBatch> {
    private static final Logger LOG = LoggerFactory.getLogger("rmqfast.spark");

    private final StoreVector[] vectors;
    private final long[] addresses;
    private final ColumnarBatch batch;
    private long handle;

    StoreReader(StructType schema, long handle) {
        this.handle = handle;
        vectors = StoreVector.of(schema);
        addresses = new long[StoreVector.addresses(vectors)];
        batch = new ColumnarBatch(vectors);
    }

    @Override
    public synchronized boolean next() {
        if (handle == 0) {
            return false;
        }
        long rows = Native.next(handle, addresses);
        if (rows < 0) {
            warn();
            return false;
        }
        int at = 0;
        for (StoreVector vector : vectors) {
            at = vector.point(addresses, at);
        }
        batch.setNumRows((int) rows);
        return true;
    }

    @Override
    public ColumnarBatch get() {
        return batch;
    }

    @Override
    public synchronized void close() {
        long given = handle;
        handle = 0;
        if (given != 0) {
            Native.close(given);
        }
    }

    private void warn() {
        String warning = Native.warning(handle);
        if (warning != null) {
            LOG.warn(warning);
        }
    }
}
