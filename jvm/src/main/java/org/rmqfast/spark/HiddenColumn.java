package org.rmqfast.spark;

import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A column of messages that is none of a table's. A query gets it if it names it. */
final class HiddenColumn implements MetadataColumn {
    private final StructField field;

    private HiddenColumn(StructField field) {
        this.field = field;
    }

    /** Returns the columns that a schema lacks. */
    static MetadataColumn[] outside(StructType schema) {
        StructField[] all = Schemas.all().fields();
        MetadataColumn[] hidden = new MetadataColumn[all.length];
        int count = 0;
        for (StructField field : all) {
            if (!schema.getFieldIndex(field.name()).isDefined()) {
                hidden[count++] = new HiddenColumn(field);
            }
        }
        return Arrays.copyOf(hidden, count);
    }

    @Override
    public String name() {
        return field.name();
    }

    @Override
    public DataType dataType() {
        return field.dataType();
    }
}
