package org.rmqfast.spark;

import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A store or a topic; what is read of it is fixed when Spark plans an action. */
final class SourceTable implements SupportsRead {
    private final StructType schema;
    private final String[] options;

    SourceTable(StructType schema, String[] options) {
        this.schema = schema;
        this.options = options;
    }

    @Override
    public String name() {
        return "rocketmq-columnar";
    }

    @Override
    @SuppressWarnings("deprecation")    // columns(), which replaces it, came with Spark 3.4
    public StructType schema() {
        return schema;
    }

    @Override
    public Set<TableCapability> capabilities() {
        return EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) {
        return new SourceScanBuilder(schema, resolve(), options);
    }

    /** The options with offsets as the store now stands. */
    String[] resolve() {
        String[] fields = new String[3 * schema.fields().length];
        int at = 0;
        for (StructField field : schema.fields()) {
            fields[at++] = field.name();
            fields[at++] = field.dataType().catalogString();
            fields[at++] = String.valueOf(field.nullable());
        }
        return Native.resolve(options, fields);
    }
}
