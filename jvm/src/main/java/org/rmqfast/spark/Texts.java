package org.rmqfast.spark;

import java.sql.Timestamp;
import java.time.Instant;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Converts options and filters to the strings that Rust parses. */
final class Texts {
    /** Milliseconds of the year 1900. Earlier Timestamps use another calendar than Spark. */
    private static final long YEAR_1900 = -2208988800000L;

    private Texts() {}

    static String[] pairs(Map<String, String> options) {
        String[] pairs = new String[2 * options.size()];
        int at = 0;
        for (Map.Entry<String, String> option : options.entrySet()) {
            pairs[at++] = option.getKey();
            pairs[at++] = option.getValue();
        }
        return pairs;
    }

    /** Returns options in which names and values alternate as a map that ignores case. */
    static Map<String, String> map(String[] pairs) {
        Map<String, String> options = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (int i = 0; i < pairs.length; i += 2) {
            options.put(pairs[i], pairs[i + 1]);
        }
        return options;
    }

    /** Returns the options that are not among others, or have another value there. */
    static Map<String, String> others(Map<String, String> given, String[] among) {
        Map<String, String> known = map(among);
        Map<String, String> others = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (Map.Entry<String, String> option : given.entrySet()) {
            if (!option.getValue().equals(known.get(option.getKey()))) {
                others.put(option.getKey(), option.getValue());
            }
        }
        return others;
    }

    /** Returns name, type and nullability of each field. The type of a struct is JSON, that of others its usual name. */
    static String[] fields(StructType schema) {
        String[] texts = new String[3 * schema.fields().length];
        int at = 0;
        for (StructField field : schema.fields()) {
            DataType type = field.dataType();
            texts[at++] = field.name();
            texts[at++] = type instanceof StructType ? type.json() : type.catalogString();
            texts[at++] = String.valueOf(field.nullable());
        }
        return texts;
    }

    /** Returns kind, column and values of a filter; null for filters that Spark must apply. */
    static String[] filter(Filter filter) {
        if (filter instanceof EqualTo) {
            return filter("=", ((EqualTo) filter).attribute(), ((EqualTo) filter).value());
        } else if (filter instanceof In) {
            return filter("in", ((In) filter).attribute(), ((In) filter).values());
        } else if (filter instanceof GreaterThan) {
            return filter(">", ((GreaterThan) filter).attribute(), ((GreaterThan) filter).value());
        } else if (filter instanceof GreaterThanOrEqual) {
            return filter(">=", ((GreaterThanOrEqual) filter).attribute(), ((GreaterThanOrEqual) filter).value());
        } else if (filter instanceof LessThan) {
            return filter("<", ((LessThan) filter).attribute(), ((LessThan) filter).value());
        } else if (filter instanceof LessThanOrEqual) {
            return filter("<=", ((LessThanOrEqual) filter).attribute(), ((LessThanOrEqual) filter).value());
        } else if (filter instanceof IsNull) {
            return filter("null", ((IsNull) filter).attribute());
        } else if (filter instanceof IsNotNull) {
            return filter("not null", ((IsNotNull) filter).attribute());
        }
        return null;
    }

    private static String[] filter(String kind, String column, Object... values) {
        String[] texts = new String[2 + values.length];
        texts[0] = kind;
        texts[1] = column;
        for (int i = 0; i < values.length; i++) {
            texts[2 + i] = values[i] == null ? null : text(values[i]);
            if (values[i] != null && texts[2 + i] == null) {
                return null;
            }
        }
        return texts;
    }

    private static String text(Object value) {
        if (value instanceof Timestamp) {
            Timestamp time = (Timestamp) value;
            return time.getTime() < YEAR_1900 ? null : micros(Math.floorDiv(time.getTime(), 1000L), time.getNanos());
        } else if (value instanceof Instant) {
            return micros(((Instant) value).getEpochSecond(), ((Instant) value).getNano());
        } else if (value instanceof String || value instanceof Integer || value instanceof Long) {
            return value.toString();
        }
        return null;
    }

    private static String micros(long seconds, int nanos) {
        return String.valueOf(Math.addExact(Math.multiplyExact(seconds, 1000000L), nanos / 1000));
    }
}
