package org.rmqfast.spark;

import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;

/** The writer of a table that is a topic; an updated row is one more message. */
final class TopicWriteBuilder implements SupportsTruncate, SupportsStreamingUpdateAsAppend {
    private final LogicalWriteInfo info;

    TopicWriteBuilder(LogicalWriteInfo info) {
        this.info = info;
    }

    /**
     * What such a table can do. Which columns there may be Rust says, in the words of PySpark's sink; so does {@link #truncate}
     * refuse what no topic can do.
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
        return new TopicWrite(Texts.pairs(info.options().asCaseSensitiveMap()), info.options().get("topic"), info.schema());
    }
}
