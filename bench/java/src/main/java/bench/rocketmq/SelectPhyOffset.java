package bench.rocketmq;

import bench.Options;
import bench.Result;
import bench.Rounds;
import java.io.File;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.store.index.IndexFile;

/** {@code selectPhyOffset(topic + "#" + key)} of every key of a file, one after the other. */
final class SelectPhyOffset {
    private static final int MAX_NUM = 64;

    private long hits;
    private long checksum;

    static Result run(Options options) throws Exception {
        File file = new File(options.text("index"));
        IndexFile index = new IndexFile(file.getPath(), options.integer("slots"), options.integer("entries"), 0, 0);
        index.load();
        Result result = new Result();
        for (String measure : new String[] {"hit", "miss"}) {
            String[] wanted;
            try (Keys keys = new Keys(options.text(measure))) {
                wanted = keys.block(0, keys.count);
            }
            measure(index, measure, wanted, options, result);
        }
        return result;
    }

    private static void measure(IndexFile index, String measure, String[] keys, Options options, Result result) {
        Rounds rounds = new Rounds(options);
        while (rounds.next()) {
            SelectPhyOffset run = new SelectPhyOffset();
            long start = System.nanoTime();
            run.select(index, "TopicTest", keys);
            long nanos = System.nanoTime() - start;
            if (rounds.isTimed()) {
                result.add(measure, nanos, keys.length);
                result.answer(measure + "_hits", run.hits);
                result.answer(measure + "_checksum", run.checksum);
            }
        }
    }

    private void select(IndexFile index, String topic, String[] keys) {
        List<Long> found = new ArrayList<>(MAX_NUM);
        for (int i = 0; i < keys.length; i++) {
            found.clear();
            index.selectPhyOffset(found, topic + "#" + keys[i], MAX_NUM, 0, Long.MAX_VALUE, false);
            hits += found.size();
            for (int j = 0; j < found.size(); j++) {
                checksum += found.get(j) * (i + 1);
            }
        }
    }
}
