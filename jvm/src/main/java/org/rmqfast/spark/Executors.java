package org.rmqfast.spark;

import java.util.TreeSet;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkExecutorInfo;
import org.apache.spark.storage.BlockManagerId;

/** The executors of a session. */
final class Executors {
    private Executors() {}

    /**
     * The host of each executor, in order; none where two share one: a task can be sent to a host, not to one of several
     * executors there. {@code executor_host_id}, which Kafka's source names, needs a list of Scala that differs between 2.12
     * and 2.13.
     */
    static String[] hosts() {
        SparkContext context = SparkContext.getOrCreate();
        BlockManagerId driver = SparkEnv.get().blockManager().blockManagerId();
        if (context.isLocal()) {
            return new String[] {driver.host()};
        }
        TreeSet<String> hosts = new TreeSet<>();
        for (SparkExecutorInfo executor : context.statusTracker().getExecutorInfos()) {
            boolean isDriver = executor.host().equals(driver.host()) && executor.port() == driver.port();
            if (!isDriver && !hosts.add(executor.host())) {
                return new String[0];
            }
        }
        return hosts.toArray(new String[0]);
    }
}
