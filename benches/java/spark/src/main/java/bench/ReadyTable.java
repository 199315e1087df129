package bench;

import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table of a source that does nothing: its rows, what it can, and how options become scans. */
@SuppressWarnings("deprecation")    // schema(): columns(), which replaces it, is made of it
record ReadyTable(StructType schema, Set<TableCapability> capabilities, Function<CaseInsensitiveStringMap, ScanBuilder> scans)
        implements SupportsRead {
    @Override
    public String name() {
        return "ready";
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return scans.apply(options);
    }
}
