package org.rmqfast.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalog whose tables are the topics of a store or a cluster:
 * {@code spark.sql.catalog.rmq=org.rmqfast.spark.RocketMQCatalog}. Its options are those of the data source, such as
 * {@code spark.sql.catalog.rmq.nameServer}.
 */
public final class RocketMQCatalog implements TableCatalog {
    private static final String UNKNOWN_TOPIC = "UnknownTopicError: ";

    private String name;
    private String[] options;

    @Override
    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
        this.options = Texts.pairs(options.asCaseSensitiveMap());
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
        if (namespace.length > 0) {
            throw new NoSuchNamespaceException(namespace);
        }
        String[] topics = Native.topics(options);
        Identifier[] tables = new Identifier[topics.length];
        for (int i = 0; i < topics.length; i++) {
            tables[i] = Identifier.of(namespace, topics[i]);
        }
        return tables;
    }

    @Override
    public Table loadTable(Identifier table) throws NoSuchTableException {
        return load(table, new String[0]);
    }

    /** Returns the table as it was at offsets: the JSON of the option endingOffsets. */
    @Override
    public Table loadTable(Identifier table, String version) throws NoSuchTableException {
        return load(table, new String[] {"endingOffsets", version});
    }

    /** Returns the table as it was at a time, in microseconds. */
    @Override
    public Table loadTable(Identifier table, long timestamp) throws NoSuchTableException {
        return load(table, new String[] {"asOf", String.valueOf(Math.floorDiv(timestamp, 1000))});
    }

    private Table load(Identifier table, String[] more) throws NoSuchTableException {
        if (table.namespace().length > 0) {
            throw new NoSuchTableException(table);
        }
        String[] ofTopic = Native.withOptions(Native.tableOptions(options, table.name()), more);
        try {
            StructType schema = Schemas.row(Native.optionsOf(ofTopic, false));
            SourceTable loaded = new SourceTable(name + "." + table.name(), schema, ofTopic);
            loaded.check();
            return loaded;
        } catch (SourceException e) {
            if (e.getMessage().startsWith(UNKNOWN_TOPIC)) {
                throw new NoSuchTableException(table);
            }
            throw e;
        }
    }

    @Override
    @SuppressWarnings("deprecation")    // Spark 3.5 has no other that it declares abstract
    public Table createTable(Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties) {
        throw unsupported("create", table, "create topics by `rmqfast topic create`, and write to them by INSERT INTO");
    }

    @Override
    public Table alterTable(Identifier table, TableChange... changes) {
        throw unsupported("alter", table, "change topics by `rmqfast topic create`");
    }

    @Override
    public boolean dropTable(Identifier table) {
        throw unsupported("drop", table, "delete topics by `rmqfast topic delete`");
    }

    @Override
    public void renameTable(Identifier table, Identifier renamed) {
        throw unsupported("rename", table, "topics keep their names");
    }

    private UnsupportedOperationException unsupported(String what, Identifier table, String next) {
        return new UnsupportedOperationException("cannot " + what + " " + name + "." + table.name() + ": " + next);
    }
}
