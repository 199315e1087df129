package org.rmqfast.spark;

import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** A batch that knows its reader, which converts it to rows. */
final class RustBatch extends ColumnarBatch {
    final VectorReader reader;

    RustBatch(ColumnVector[] vectors, VectorReader reader) {
        super(vectors);
        this.reader = reader;
    }
}
