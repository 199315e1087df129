package org.rmqfast.spark;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The data source rocketmq-columnar. It reads a store directory or a live topic into columns that Rust fills inside the
 * JVM.
 */
public final class RocketMQColumnar implements TableProvider, DataSourceRegister {
    private boolean isInferred;

    @Override
    public String shortName() {
        return "rocketmq-columnar";
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        isInferred = true;
        return Schemas.row(Texts.pairs(options.asCaseSensitiveMap()));
    }

    /** Returns true because a user's schema may select columns. */
    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
        SourceTable table = new SourceTable(shortName(), schema, Texts.pairs(options));
        // a topic with a user's schema may only be written to, so reads are not checked
        if (isInferred || !table.isTopic()) {
            table.check();
        }
        return table;
    }
}
