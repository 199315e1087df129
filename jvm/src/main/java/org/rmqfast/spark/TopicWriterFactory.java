package org.rmqfast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Creates the writers in the executors; holds the values that all tasks share. */
final class TopicWriterFactory implements DataWriterFactory, StreamingDataWriterFactory {
    private static final long serialVersionUID = 1;

    private final String[] options;
    private final StructType schema;
    private final int[] places;

    TopicWriterFactory(String[] options, StructType schema, int[] places) {
        this.options = options;
        this.schema = schema;
        this.places = places;
    }

    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task) {
        TopicRows rows = new TopicRows(options, TopicFields.texts(schema), partition, false);
        return new TopicDataWriter(new TopicFields(schema, places), rows, partition);
    }

    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task, long epoch) {
        return createWriter(partition, task);
    }
}
