package bench.kafka;

import bench.Files;
import bench.Options;
import bench.Result;
import bench.Rounds;
import java.io.File;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.TimeIndex;

/** {@code append} and {@code maybeAppend} of as many entries as an index takes, into pages that were written before. */
final class Append {
    private Append() {
    }

    static Result run(Options options) throws Exception {
        File offsetFile = new File(options.text("scratch"), "00000000000000000000.index");
        File timeFile = new File(options.text("scratch"), "00000000000000000000.timeindex");
        long[] offsets = Numbers.read(options.text("offsets"));
        long[] positions = Numbers.read(options.text("positions"));
        long[] times = Numbers.read(options.text("times"));
        long[] timeOffsets = Numbers.read(options.text("time_offsets"));
        int size = options.integer("size");
        Result result = new Result();
        try (OffsetIndex offsetIndex = new OffsetIndex(offsetFile, 0, size);
            TimeIndex timeIndex = new TimeIndex(timeFile, 0, size)) {
            int[] places = new int[positions.length];
            for (int i = 0; i < places.length; i++) {
                places[i] = (int) positions[i];
            }
            append(offsetIndex, offsets, places);
            append(timeIndex, times, timeOffsets);
            Rounds rounds = new Rounds(options);
            while (rounds.next()) {
                offsetIndex.truncate();
                timeIndex.truncate();
                long start = System.nanoTime();
                append(offsetIndex, offsets, places);
                long between = System.nanoTime();
                append(timeIndex, times, timeOffsets);
                long end = System.nanoTime();
                if (rounds.isTimed()) {
                    result.add("offset", between - start, offsets.length);
                    result.add("time", end - between, times.length);
                }
            }
        }
        result.answer("files", Files.checksum(new File(options.text("scratch"))));
        return result;
    }

    private static void append(OffsetIndex index, long[] offsets, int[] positions) {
        for (int i = 0; i < offsets.length; i++) {
            index.append(offsets[i], positions[i]);
        }
    }

    private static void append(TimeIndex index, long[] times, long[] offsets) {
        for (int i = 0; i < times.length; i++) {
            index.maybeAppend(times[i], offsets[i]);
        }
    }
}
