package org.rmqfast.spark;

import java.util.TreeSet;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkExecutorInfo;
import org.apache.spark.storage.BlockManagerId;

final class Executors {
    private Executors() {}

    /**
     * Returns the executors' hosts, sorted, or none if two executors share a host.
     *
     * A task can be sent to a host but not to one of several executors on it. Kafka's source names {@code
     * executor_host_id}, but that needs a Scala list whose type differs between Scala 2.12 and 2.13.
     */
    static String[] hosts() {
        SparkContext context = SparkContext.getOrCreate();
        BlockManagerId driver = SparkEnv.get().blockManager().blockManagerId();
        if (context.isLocal()) {
            return new String[] {driver.host()};
        }
        TreeSet<String> hosts = new TreeSet<>();
        for (SparkExecutorInfo executor : context.statusTracker().getExecutorInfos()) {
            // the driver is listed as an executor, too
            boolean isDriver = executor.host().equals(driver.host()) && executor.port() == driver.port();
            if (!isDriver && !hosts.add(executor.host())) {
                return new String[0];
            }
        }
        return hosts.toArray(new String[0]);
    }
}
