package org.rmqfast.spark;

import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;

/** Iterates over rows that Rust makes from batches, many at a time. Reuses one row object, like Spark's own iterator. */
final class RustRowIterator implements Iterator<InternalRow> {
    private final Iterator<ColumnarBatch> batches;
    private final SQLMetric rowMetric;
    private final SQLMetric batchMetric;
    private final UnsafeRow row;
    private final long[] places = new long[2];
    private RustBatch batch;
    /** Number of rows of the batch that were converted so far. */
    private int done;
    /** Number of converted rows that were not returned yet; below, the addresses of the next row and of its length. */
    private int left;
    private long address;
    private long length;

    RustRowIterator(Iterator<ColumnarBatch> batches, int fields, SQLMetric rowMetric, SQLMetric batchMetric) {
        this.batches = batches;
        this.rowMetric = rowMetric;
        this.batchMetric = batchMetric;
        row = new UnsafeRow(fields);
    }

    @Override
    public boolean hasNext() {
        while (left == 0) {
            if (batch != null && done < batch.numRows()) {
                left = batch.reader.rows(done, places);
                done += left;
                address = places[0];
                length = places[1];
            } else if (batches.hasNext()) {
                batch = (RustBatch) batches.next();
                done = 0;
                batchMetric.add(1);
                rowMetric.add(batch.numRows());
            } else {
                return false;
            }
        }
        return true;
    }

    @Override
    public InternalRow next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        // rows stand one behind the other, so each begins where the previous one ends
        int bytes = Platform.getInt(null, length);
        row.pointTo(null, address, bytes);
        address += bytes;
        length += Integer.BYTES;
        left--;
        return row;
    }
}
