package bench.rocketmq;

import bench.Files;
import bench.Memory;
import bench.Options;
import bench.Result;
import bench.Rounds;
import java.io.File;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.index.IndexService;

/** Decoding a log and {@code IndexService.buildIndex} of every message, into a fresh directory. */
final class BuildIndex {
    private BuildIndex() {
    }

    static Result run(Options options) throws Exception {
        Result result = new Result();
        Memory memory = new Memory(options);
        File root = new File(options.text("scratch"), "build");
        Files.remove(root);
        DefaultMessageStore store = Store.over(root, options);
        Log log = new Log(store.getCommitLog(), new File(options.text("log")));
        Rounds rounds = new Rounds(options);
        IndexService service = null;
        while (rounds.next()) {
            clear(service, root);
            service = new IndexService(store);
            memory.warm();
            long start = System.nanoTime();
            long messages = log.visit(service::buildIndex);
            long nanos = System.nanoTime() - start;
            if (rounds.isTimed()) {
                result.add("build", nanos, messages);
            }
            result.answer("messages", messages);
        }
        result.answer("files", Files.checksum(new File(root, "index")));
        clear(service, root);
        Files.remove(root);
        return result;
    }

    private static void clear(IndexService service, File root) {
        if (service != null) {
            service.destroy();
        }
        Files.remove(new File(root, "index"));
    }
}
