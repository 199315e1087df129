package bench;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.spark.sql.ForeachWriter;
import org.apache.spark.sql.Row;

/**
 * A sink that notes how old each row is: now less the time in the first eight bytes of its body, nanoseconds since 1970.
 * Rows of the first batch do not count, as all is compiled in it. In local mode the driver's process runs the tasks, so
 * that what they noted is here.
 */
public final class BornAges extends ForeachWriter<Row> {
    private static final int STEP = 5_000, STEPS = 2_000_000;  // steps of 5 us, up to 10 s
    private static final AtomicLongArray COUNTS = new AtomicLongArray(STEPS);
    /** Of each batch: when its last task began, when the first of them ended, in milliseconds. */
    private static final TreeMap<Long, double[]> TIMES = new TreeMap<>();
    private long batch;

    /** Forgets all. */
    public static void reset() {
        for (int i = 0; i < STEPS; i++) COUNTS.set(i, 0);
        synchronized (TIMES) {
            TIMES.clear();
        }
    }

    /** How many rows count, so far. */
    public static long count() {
        long count = 0;
        for (int i = 0; i < STEPS; i++) count += COUNTS.get(i);
        return count;
    }

    /** The age in milliseconds that such a share of the rows does not pass. */
    public static double age(double share) {
        long wanted = (long) Math.ceil(count() * share), seen = 0;
        for (int i = 0; i < STEPS; i++) {
            seen += COUNTS.get(i);
            if (seen >= wanted) return (i + 0.5) * STEP / 1e6;
        }
        return (double) STEPS * STEP / 1e6;
    }

    /** The longest time in milliseconds between two batches in which some queue was not read. */
    public static double gap() {
        synchronized (TIMES) {
            double longest = 0, ended = Double.NaN;
            for (double[] times : TIMES.values()) {
                if (!Double.isNaN(ended)) longest = Math.max(longest, times[0] - ended);
                ended = times[1];
            }
            return longest;
        }
    }

    /** How many batches have begun. */
    public static int batches() {
        synchronized (TIMES) {
            return TIMES.size();
        }
    }

    @Override
    public boolean open(long partition, long number) {
        batch = number;
        synchronized (TIMES) {
            double[] times = TIMES.computeIfAbsent(number, n -> new double[] {0, Double.NaN});
            times[0] = Math.max(times[0], now() / 1e6);
        }
        return true;
    }

    @Override
    public void process(Row row) {
        if (batch == 0) return;
        long age = now() - ByteBuffer.wrap((byte[]) row.get(0)).getLong();
        COUNTS.incrementAndGet((int) Math.min(Math.max(age, 0) / STEP, STEPS - 1));
    }

    @Override
    public void close(Throwable failed) {
        synchronized (TIMES) {
            double[] times = TIMES.get(batch);
            if (times != null && !(times[1] <= now() / 1e6)) times[1] = now() / 1e6;
        }
    }

    /** Nanoseconds since 1970. */
    static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }
}
