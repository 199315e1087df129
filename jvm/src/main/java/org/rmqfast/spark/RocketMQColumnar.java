package org.rmqfast.spark;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The data source rocketmq-columnar: a store directory or a live topic as columns that Rust fills, inside the JVM. */
public final class RocketMQColumnar implements TableProvider, DataSourceRegister {
    private boolean isInferred;

    @Override
    public String shortName() {
        return "rocketmq-columnar";
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        isInferred = true;
        String[] row = Native.row(Texts.pairs(options.asCaseSensitiveMap()));
        StructType schema = new StructType();
        for (int i = 0; i < row.length; i += 2) {
            schema = schema.add(row[i], type(row[i + 1]), true);
        }
        return schema;
    }

    /** A schema of the user's chooses columns. */
    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
        SourceTable table = new SourceTable(schema, Texts.pairs(options));
        // a topic with a schema of the user's may be there to be written to
        if (isInferred || !table.isTopic()) {
            table.check();
        }
        return table;
    }

    private static DataType type(String name) {
        switch (name) {
            case "int":
                return DataTypes.IntegerType;
            case "bigint":
                return DataTypes.LongType;
            case "timestamp":
                return DataTypes.TimestampType;
            case "binary":
                return DataTypes.BinaryType;
            case "string":
                return DataTypes.StringType;
            default:
                return DataTypes.createMapType(DataTypes.StringType, DataTypes.StringType, true);
        }
    }
}
