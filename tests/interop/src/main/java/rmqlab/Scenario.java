package rmqlab;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * What official clients do, told in rows, one JSON line each: {"scenario": name, "row": {...}}.
 *   Scenario --namesrv A --broker A [--second A] [--only push,retry] [--threads 5] | --list
 * Every scenario has a topic and groups of its own; an exception of one is a row of it.
 * With the address of a second broker, broker-b, the scenarios are those of two brokers.
 */
public final class Scenario {
    interface Play {
        void run(Stage s) throws Exception;
    }

    static Map<String, Play> all() {
        Map<String, Play> m = new LinkedHashMap<>();
        GroupScenarios.add(m); // the slow ones first
        PushScenarios.add(m);
        PullScenarios.add(m);
        SendScenarios.add(m);
        AdminScenarios.add(m);
        return m;
    }

    static Map<String, Play> ofTwo() {
        Map<String, Play> m = new LinkedHashMap<>();
        TwoBrokerScenarios.add(m);
        return m;
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> o = J.opts(args, 0);
        Map<String, Play> all = o.containsKey("second") ? ofTwo() : all();
        if (o.containsKey("list")) {
            for (String name : all.keySet()) J.out(J.map("scenario", name));
            J.flush();
            System.exit(0);
        }
        List<String> only = o.containsKey("only") ? Arrays.asList(o.get("only").split(",")) : List.copyOf(all.keySet());
        if (!all.keySet().containsAll(only)) throw new IllegalArgumentException("unknown scenario in " + only);
        DefaultMQAdminExt admin = new DefaultMQAdminExt(8000L);
        admin.setNamesrvAddr(o.get("namesrv"));
        admin.setInstanceName("scenario_admin");
        admin.start();
        ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(o.getOrDefault("threads", "5")));
        for (String name : only) {
            pool.submit(() -> {
                long begin = System.nanoTime();
                try (Stage s = new Stage(name, o.get("namesrv"), o.get("broker"), o.get("second"), admin)) {
                    all.get(name).run(s);
                } catch (Throwable e) {
                    e.printStackTrace();
                    J.out(J.map("scenario", name, "row", J.map("failed", String.valueOf(e))));
                }
                J.out(J.map("scenario", name, "seconds", (System.nanoTime() - begin) / 100_000_000 / 10.0));
            });
        }
        pool.shutdown();
        boolean ended = pool.awaitTermination(280, TimeUnit.SECONDS);
        J.flush();
        Runtime.getRuntime().halt(ended ? 0 : 1);
    }

    private Scenario() { }
}
