package org.rmqfast.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/** Accepts columns, filters and a limit from Spark. Rust decides which filters the read applies. */
final class SourceScanBuilder
        implements SupportsPushDownFilters, SupportsPushDownRequiredColumns, SupportsPushDownLimit,
                SupportsPushDownAggregates {
    private final String[] options;
    private final String[] asGiven;
    private StructType schema;
    private Filter[] pushed = new Filter[0];
    private String[][] filters = new String[0][];
    private long limit = Long.MAX_VALUE;
    private ListedScan answer;

    SourceScanBuilder(StructType schema, String[] options, String[] asGiven) {
        this.schema = schema;
        this.options = options;
        this.asGiven = asGiven;
    }

    @Override
    public Filter[] pushFilters(Filter[] all) {
        List<Filter> rest = new ArrayList<>();
        List<Filter> asked = new ArrayList<>();
        List<String[]> texts = new ArrayList<>();
        for (Filter filter : all) {
            String[] text = Texts.filter(filter);
            (text == null ? rest : asked).add(filter);
            if (text != null) {
                texts.add(text);
            }
        }
        boolean[] isTaken = Native.push(options, texts.toArray(new String[0][]));
        List<Filter> taken = new ArrayList<>();
        List<String[]> takenTexts = new ArrayList<>();
        for (int i = 0; i < isTaken.length; i++) {
            (isTaken[i] ? taken : rest).add(asked.get(i));
            if (isTaken[i]) {
                takenTexts.add(texts.get(i));
            }
        }
        pushed = taken.toArray(new Filter[0]);
        filters = takenTexts.toArray(new String[0][]);
        return rest.toArray(new Filter[0]);
    }

    @Override
    public Filter[] pushedFilters() {
        return pushed;
    }

    @Override
    public void pruneColumns(StructType required) {
        schema = required;
    }

    /** Returns true: each task stops at the limit, and Spark applies the limit again to all rows. */
    @Override
    public boolean pushLimit(int rows) {
        limit = rows;
        return true;
    }

    /** Called by Spark only if the read applies all filters. */
    @Override
    public boolean pushAggregation(Aggregation aggregation) {
        AggregateFunc[] asked = aggregation.aggregateExpressions();
        if (aggregation.groupByExpressions().length > 0 || !ListedScan.canTell(asked)) {
            return false;
        }
        long[] listed = Native.listed(options, filters);
        answer = listed == null ? null : new ListedScan(asked, listed);
        return answer != null;
    }

    @Override
    public Scan build() {
        if (answer != null) {
            return answer;
        }
        return new SourceScan(schema, options, asGiven, pushed, filters, limit);
    }
}
