package bench.rocketmq;

import bench.Options;
import bench.Result;
import bench.Rounds;
import java.io.File;
import org.apache.rocketmq.store.DispatchRequest;

/** {@code CommitLog.checkMessageAndReturnSize} of every message of a log, and nothing with it; with or without CRC. */
final class Decode {
    private long offsets;
    private long entries;
    private long hashes;

    static Result run(Options options) throws Exception {
        File scratch = new File(options.text("scratch"), "decode");
        boolean crc = Boolean.parseBoolean(options.text("crc", "false"));
        Log log = new Log(Store.over(scratch, options).getCommitLog(), new File(options.text("log")), crc);
        Result result = new Result();
        Rounds rounds = new Rounds(options);
        while (rounds.next()) {
            Decode decode = new Decode();
            long start = System.nanoTime();
            long messages = log.visit(request -> decode.offsets += request.getCommitLogOffset());
            long nanos = System.nanoTime() - start;
            if (rounds.isTimed()) {
                result.add("decode", nanos, messages);
            }
        }
        Decode answer = new Decode();
        result.answer("messages", log.visit(answer::count));
        result.answer("entries", answer.entries);
        result.answer("hashes", answer.hashes);
        result.answer("offsets", answer.offsets);
        return result;
    }

    /** What the index would hold, untimed. */
    private void count(DispatchRequest request) {
        if (request.getUniqKey() != null) {
            entry(request, request.getUniqKey());
        }
        String keys = request.getKeys() == null ? "" : request.getKeys();
        for (String key : keys.split(" ")) {
            if (!key.isEmpty()) {
                entry(request, key);
            }
        }
    }

    private void entry(DispatchRequest request, String key) {
        int hash = Math.abs((request.getTopic() + "#" + key).hashCode());
        entries++;
        hashes += Math.max(hash, 0);
        offsets += request.getCommitLogOffset();
    }
}
