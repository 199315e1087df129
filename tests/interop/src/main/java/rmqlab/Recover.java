package rmqlab;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import org.apache.rocketmq.store.DefaultMessageStore;

/**
 * Lets DefaultMessageStore recover stores, each in its place: Recover [--slots 1000 --index-num 4000]. Directories come in, a
 * line each; out comes {"loaded", "end"}: the offset behind the last record. Each store keeps some of the heap: ask for few.
 */
public final class Recover {
    public static void main(String[] args) {
        try {
            run(args);
            Runtime.getRuntime().halt(0);
        } catch (Throwable e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(4); // the stores' threads would keep the process alive
        }
    }

    private static void run(String[] args) throws Exception {
        Map<String, String> options = J.opts(args, 0);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Path store = new File(line).toPath();
            DefaultMessageStore s = Shim.open(DumpStore.config(store, options));
            boolean loaded = s.load();
            J.out(J.map("loaded", loaded, "end", s.getMaxPhyOffset()));
            s.destroy(); // unmaps its files
        }
        J.flush();
    }
}
