package org.rmqfast.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Converts columns as Rust names them to schemas of Spark. */
final class Schemas {
    private Schemas() {}

    /** Returns the columns that options select. */
    static StructType row(String[] options) {
        return of(Native.row(options));
    }

    /** Returns all columns of messages. */
    static StructType all() {
        return of(Native.allColumns());
    }

    private static StructType of(String[] row) {
        StructType schema = new StructType();
        for (int i = 0; i < row.length; i += 2) {
            schema = schema.add(row[i], type(row[i + 1]), true);
        }
        return schema;
    }

    private static DataType type(String name) {
        if (name.startsWith("{")) {
            // not DDL, which means other types by the settings of a session
            return DataType.fromJson(name);
        }
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
