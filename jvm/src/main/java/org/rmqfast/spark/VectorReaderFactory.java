package org.rmqfast.spark;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Creates the readers in the executors; holds the values that all tasks share. */
final class VectorReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;

    private final StructType schema;
    private final String[] options;
    private final String[][] filters;
    private final long limit;

    VectorReaderFactory(StructType schema, String[] options, String[][] filters, long limit) {
        this.schema = schema;
        this.options = options;
        this.filters = filters;
        this.limit = limit;
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return true;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        return reader(partition);
    }

    /** Called in Real-Time Mode only. */
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        return new RealTimeReader(reader(partition));
    }

    private VectorReader reader(InputPartition partition) {
        Piece piece = (Piece) partition;
        TaskContext task = TaskContext.get();
        // a retried task must not use pooled connections, which may have made the first attempt fail
        boolean isRepeated = task != null && task.attemptNumber() > 0;
        long handle = Native.open(options, Texts.fields(schema), filters, piece.bytes, limit, isRepeated,
                piece.comesBack);
        return new VectorReader(schema, handle);
    }
}
