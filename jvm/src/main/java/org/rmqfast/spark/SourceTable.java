package org.rmqfast.spark;

import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A store, or a topic, which can also be written to. Offsets are fixed when Spark plans an action. */
final class SourceTable implements SupportsRead, SupportsWrite {
    private final StructType schema;
    private final String[] options;
    private final boolean isTopic;
    private String[] checked;

    SourceTable(StructType schema, String[] options) {
        this.schema = schema;
        this.options = options;
        isTopic = Native.isTopic(options);
    }

    @Override
    public String name() {
        return "rocketmq-columnar";
    }

    @Override
    @SuppressWarnings("deprecation")    // its replacement columns() exists only since Spark 3.4
    public StructType schema() {
        return schema;
    }

    @Override
    public Set<TableCapability> capabilities() {
        Set<TableCapability> capabilities = EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ);
        if (isTopic) {
            capabilities.addAll(TopicWriteBuilder.capabilities());
        }
        return capabilities;
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) {
        return new SourceScanBuilder(schema, resolved(), options);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return new TopicWriteBuilder(info);
    }

    /** Checks early that a read is possible, so that errors do not wait for the first action. */
    void check() {
        resolved();
    }

    boolean isTopic() {
        return isTopic;
    }

    /**
     * Returns the options with the store's current offsets.
     *
     * Offsets of a topic are fixed later, when its pieces are planned. Whether its brokers' logs are read is decided
     * here, once.
     */
    private String[] resolved() {
        if (isTopic && checked != null) {
            return checked;
        }
        checked = Native.resolve(options, Texts.fields(schema));
        return checked;
    }
}
