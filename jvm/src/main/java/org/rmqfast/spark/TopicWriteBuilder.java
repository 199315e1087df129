package org.rmqfast.spark;

import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;
import org.apache.spark.sql.types.StructType;

/** The writer of a topic. In update mode each updated row is sent as one more message. */
final class TopicWriteBuilder implements SupportsTruncate, SupportsStreamingUpdateAsAppend {
    private final StructType schema;
    private final String[] options;

    TopicWriteBuilder(StructType schema, String[] options) {
        this.schema = schema;
        this.options = options;
    }

    /**
     * Returns what a topic supports.
     *
     * Any schema is accepted here, and truncation is declared, so that Rust and {@link #truncate} can refuse with the
     * same texts as PySpark's sink.
     */
    static Set<TableCapability> capabilities() {
        return EnumSet.of(TableCapability.BATCH_WRITE, TableCapability.STREAMING_WRITE, TableCapability.TRUNCATE,
                TableCapability.ACCEPT_ANY_SCHEMA);
    }

    @Override
    public WriteBuilder truncate() {
        throw new SourceException("ArgumentError: mode: expected append, got overwrite or complete: what a topic holds stays");
    }

    @Override
    public Write build() {
        return new TopicWrite(options, Texts.map(options).get("topic"), schema);
    }
}
