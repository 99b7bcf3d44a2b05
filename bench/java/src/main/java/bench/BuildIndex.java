package bench;

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
        int rounds = options.integer("rounds");
        for (int round = -options.integer("warmup"); round < rounds; round++) {
            IndexService service = new IndexService(store);
            memory.warm();
            long start = System.nanoTime();
            long messages = log.visit(service::buildIndex);
            long nanos = System.nanoTime() - start;
            if (round >= 0) {
                result.add("build", nanos, messages);
            }
            if (round == rounds - 1) {
                result.answer("messages", messages);
                result.answer("files", Files.checksums(new File(root, "index")));
            }
            service.destroy();
            Files.remove(new File(root, "index"));
        }
        Files.remove(root);
        return result;
    }
}
