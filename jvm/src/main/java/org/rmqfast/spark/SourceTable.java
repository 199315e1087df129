package org.rmqfast.spark;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A store, or a topic, which can also be written to. Offsets are fixed when Spark plans an action. */
final class SourceTable implements SupportsRead, SupportsWrite, SupportsMetadataColumns {
    private final String name;
    private final StructType schema;
    private final String[] asGiven;
    private final String[] options;
    private final boolean isTopic;
    private String[] checked;

    SourceTable(String name, StructType schema, String[] asGiven) {
        this.name = name;
        this.schema = schema;
        this.asGiven = asGiven;
        // read once: later the file of a schema may be gone, and executors may not have it
        options = Native.withSchemaText(asGiven);
        isTopic = Native.isTopic(options);
    }

    @Override
    public String name() {
        return name;
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

    /** The options without secrets: DESCRIBE shows them. */
    @Override
    public Map<String, String> properties() {
        return Texts.map(Native.shownOptions(options));
    }

    /** Columns that the table leaves out: queries that name them get them. */
    @Override
    public MetadataColumn[] metadataColumns() {
        return HiddenColumn.outside(schema);
    }

    /** The options of a query, as of {@code SELECT ... WITH (...)}, come before those of the table. */
    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap given) {
        String[] more = Texts.pairs(Texts.others(given.asCaseSensitiveMap(), asGiven));
        if (more.length == 0) {
            return new SourceScanBuilder(schema, resolved(), readOptions(options));
        }
        String[] all = readOptions(Native.withSchemaText(Native.withOptions(options, more)));
        return new SourceScanBuilder(schema, Native.resolve(all, Texts.fields(schema)), all);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        String[] given = Texts.pairs(info.options().asCaseSensitiveMap());
        return new TopicWriteBuilder(info.schema(), Native.withOptions(Native.optionsOf(options, true), given));
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
        checked = Native.resolve(readOptions(options), Texts.fields(schema));
        return checked;
    }
    private static String[] readOptions(String[] options) {
        return Native.optionsOf(options, false);
    }
}
