package org.rmqfast.spark;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** Metrics of a read in Spark's SQL tab. Spark creates metrics by class, so each metric has a class. */
final class SourceMetrics {
    private static final String ROWS = "rmqfastRows";
    private static final String BYTES = "rmqfastBytes";
    private static final String PULLS = "rmqfastPulls";
    private static final String WAITED = "rmqfastWaited";
    private static final String BAD_BODIES = "rmqfastBadBodies";
    /** Names in the order of {@link Native#counts}. */
    private static final String[] NAMES = {ROWS, BYTES, PULLS, WAITED, BAD_BODIES};

    static final int COUNT = NAMES.length;

    private SourceMetrics() {}

    static CustomMetric[] supported() {
        return new CustomMetric[] {new Rows(), new Bytes(), new Pulls(), new Waited(), new BadBodies()};
    }

    static CustomTaskMetric[] values(long[] counts) {
        CustomTaskMetric[] values = new CustomTaskMetric[COUNT];
        for (int i = 0; i < COUNT; i++) {
            values[i] = new Value(NAMES[i], counts[i]);
        }
        return values;
    }

    /** Messages that were passed to Spark. */
    public static final class Rows extends CustomSumMetric {
        @Override
        public String name() {
            return ROWS;
        }

        @Override
        public String description() {
            return "messages read";
        }
    }

    /** Bytes of the read records, including records that a filter dropped. */
    public static final class Bytes extends CustomSumMetric {
        @Override
        public String name() {
            return BYTES;
        }

        @Override
        public String description() {
            return "bytes of records read";
        }
    }

    /** Answers of brokers that contained messages. */
    public static final class Pulls extends CustomSumMetric {
        @Override
        public String name() {
            return PULLS;
        }

        @Override
        public String description() {
            return "pulls answered";
        }
    }

    /** Time that tasks waited for brokers, in milliseconds. */
    public static final class Waited extends CustomSumMetric {
        @Override
        public String name() {
            return WAITED;
        }

        @Override
        public String description() {
            return "milliseconds waited for brokers";
        }
    }

    /** Bodies that could not be decoded, whose value is null. */
    public static final class BadBodies extends CustomSumMetric {
        @Override
        public String name() {
            return BAD_BODIES;
        }

        @Override
        public String description() {
            return "bodies not decoded";
        }
    }

    /** The value of a metric in one task. */
    private static final class Value implements CustomTaskMetric {
        private final String name;
        private final long value;

        Value(String name, long value) {
            this.name = name;
            this.value = value;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public long value() {
            return value;
        }
    }
}
