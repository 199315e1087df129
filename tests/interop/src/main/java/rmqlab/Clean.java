package rmqlab;

import java.io.File;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.Map;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/**
 * Lets the cleaning services of DefaultMessageStore remove what is old from a closed store, in its place, as after the admin
 * command: Clean DIR [--reserved-hours 72] [--slots 1000 --index-num 4000]. Out comes a line {"minPhyOffset"} and one for each
 * queue: {"topic", "queueId", "min", "max"}.
 */
public final class Clean {
    public static void main(String[] args) {
        try {
            run(args);
            Runtime.getRuntime().halt(0);
        } catch (Throwable e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(4); // the store's threads would keep the process alive
        }
    }

    private static void run(String[] args) throws Exception {
        Map<String, String> options = J.opts(args, 1);
        Path store = new File(args[0]).toPath();
        MessageStoreConfig c = DumpStore.config(store, options);
        c.setFileReservedTime(Integer.parseInt(options.getOrDefault("reserved-hours", "72")));
        c.setCleanFileForciblyEnable(false);
        c.setDeleteCommitLogFilesInterval(0);
        c.setDeleteConsumeQueueFilesInterval(0);
        DefaultMessageStore s = Shim.open(c);
        if (!s.load()) throw new IllegalStateException("store not loaded");
        Method clean = DefaultMessageStore.class.getDeclaredMethod("cleanFilesPeriodically");
        clean.setAccessible(true);
        long before;
        do { // ten files of the log go in one run
            before = s.getMinPhyOffset();
            s.executeDeleteFilesManually();
            clean.invoke(s);
        } while (s.getMinPhyOffset() > before);
        J.out(J.map("minPhyOffset", s.getMinPhyOffset()));
        Shim.queues(s, (topic, q, lo, hi, phys, at) -> J.out(J.map("topic", topic, "queueId", q, "min", lo, "max", hi)));
        J.flush();
    }
}
