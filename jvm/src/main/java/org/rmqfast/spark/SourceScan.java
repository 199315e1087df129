package org.rmqfast.spark;

import java.util.Arrays;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A read, whose pieces Rust plans. */
final class SourceScan implements Scan, Batch {
    private static final boolean HAS_REAL_TIME_MODE = has("SupportsRealTimeMode");

    private final StructType schema;
    private final String[] options;
    private final String[] asGiven;
    private final Filter[] pushed;
    private final String[][] filters;
    private final long limit;
    private boolean isRealTime;

    /** A batch uses the resolved options. A stream uses {@code asGiven}, since it resolves its offsets itself. */
    SourceScan(StructType schema, String[] options, String[] asGiven, Filter[] pushed, String[][] filters, long limit) {
        this.schema = schema;
        this.options = options;
        this.asGiven = asGiven;
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
        return "rocketmq-columnar " + Native.describe(options, filters) + " ["
                + String.join(", ", columns()) + "] PushedFilters: " + Arrays.toString(pushed) + (limit == Long.MAX_VALUE ? "" : " PushedLimit: " + limit);
    }

    /** Whether bodies are decoded into a struct. */
    boolean isDecoded() {
        for (StructField field : schema.fields()) {
            if (field.dataType() instanceof StructType) {
                return true;
            }
        }
        return false;
    }

    /** Returns the names of columns, that of a struct with its fields. */
    private String[] columns() {
        String[] names = schema.fieldNames();
        for (int i = 0; i < names.length; i++) {
            DataType type = schema.fields()[i].dataType();
            names[i] += type instanceof StructType ? ": " + type.catalogString() : "";
        }
        return names;
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
        String[] fields = Texts.fields(schema);
        PartitionReaderFactory factory = new VectorReaderFactory(schema, asGiven, filters, limit);
        if (HAS_REAL_TIME_MODE) {
            return new RealTimeStream(asGiven, fields, factory, () -> isRealTime = true);
        }
        return new SourceStream(asGiven, fields, factory);
    }

    /** Decided here, since Spark would otherwise plan each query twice to ask the partitions. Real-Time Mode needs rows. */
    @Override
    public ColumnarSupportMode columnarSupportMode() {
        return isRealTime ? ColumnarSupportMode.UNSUPPORTED : ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return SourceMetrics.supported();
    }

    @Override
    public InputPartition[] planInputPartitions() {
        int cores = SparkContext.getOrCreate().defaultParallelism();
        return Piece.of(Native.plan(options, Texts.fields(schema), filters, cores));
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new VectorReaderFactory(schema, options, filters, limit);
    }

    /** Whether this Spark version has the given streaming interface. */
    private static boolean has(String name) {
        try {
            Class.forName("org.apache.spark.sql.connector.read.streaming." + name);
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }
}
