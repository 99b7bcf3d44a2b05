package bench.kafka;

import bench.Options;
import bench.Result;
import bench.Rounds;
import java.io.File;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.OffsetPosition;
import org.apache.kafka.storage.internals.log.TimeIndex;
import org.apache.kafka.storage.internals.log.TimestampOffset;

/** {@code OffsetIndex.lookup} and {@code TimeIndex.lookup} of every number of a file, one after the other. */
final class Lookup {
    private long first;
    private long second;

    static Result run(Options options) throws Exception {
        File offsetFile = new File(options.text("index"));
        File timeFile = new File(options.text("time_index"));
        long[] offsets = Numbers.read(options.text("offsets"));
        long[] times = Numbers.read(options.text("times"));
        long base = options.integer("base_offset");
        Result result = new Result();
        try (OffsetIndex offsetIndex = new OffsetIndex(offsetFile, base, (int) offsetFile.length(), false);
            TimeIndex timeIndex = new TimeIndex(timeFile, base, (int) timeFile.length(), false)) {
            Rounds rounds = new Rounds(options);
            while (rounds.next()) {
                Lookup run = new Lookup();
                long start = System.nanoTime();
                run.find(offsetIndex, offsets);
                long nanos = System.nanoTime() - start;
                run.finish("offset", nanos, offsets.length, rounds, result);
            }
            rounds = new Rounds(options);
            while (rounds.next()) {
                Lookup run = new Lookup();
                long start = System.nanoTime();
                run.find(timeIndex, times);
                long nanos = System.nanoTime() - start;
                run.finish("time", nanos, times.length, rounds, result);
            }
        }
        return result;
    }

    private void find(OffsetIndex index, long[] targets) {
        for (long target : targets) {
            OffsetPosition found = index.lookup(target);
            first += found.offset;
            second += found.position;
        }
    }

    private void find(TimeIndex index, long[] targets) {
        for (long target : targets) {
            TimestampOffset found = index.lookup(target);
            first += found.timestamp;
            second += found.offset;
        }
    }

    private void finish(String measure, long nanos, int targets, Rounds rounds, Result result) {
        if (rounds.isTimed()) {
            result.add(measure, nanos, targets);
        }
        result.answer(measure + "_keys", first);
        result.answer(measure + "_values", second);
    }
}
