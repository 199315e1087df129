package org.rmqfast.spark;

import java.util.Arrays;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/** What is read, and its partitions, which Rust plans. */
final class StoreScan implements Scan, Batch {
    private static final int NUMBERS = 4;

    private final StructType schema;
    private final String[] options;
    private final Filter[] pushed;
    private final String[][] filters;
    private final long limit;

    StoreScan(StructType schema, String[] options, Filter[] pushed, String[][] filters, long limit) {
        this.schema = schema;
        this.options = options;
        this.pushed = pushed;
        this.filters = filters;
        this.limit = limit;
    }

    @Override
    public StructType readSchema() {
        return schema;
    }

    @Override
    public String description() {
        return "rocketmq-columnar [" + String.join(", ", schema.fieldNames()) + "] PushedFilters: "
                + Arrays.toString(pushed) + (limit == Long.MAX_VALUE ? "" : " PushedLimit: " + limit);
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        int cores = SparkContext.getOrCreate().defaultParallelism();
        long[] numbers = Native.plan(options, schema.fieldNames(), filters, cores);
        InputPartition[] partitions = new InputPartition[numbers.length / NUMBERS];
        for (int i = 0; i < partitions.length; i++) {
            partitions[i] = new StorePartition(Arrays.copyOfRange(numbers, i * NUMBERS, (i + 1) * NUMBERS));
        }
        return partitions;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new StoreReaderFactory(schema, options, filters, limit);
    }
}
