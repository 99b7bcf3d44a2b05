package bench.rocketmq;

import bench.Files;
import bench.Memory;
import bench.Options;
import bench.Result;
import bench.Rounds;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.reflect.Field;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import org.apache.rocketmq.store.MappedFile;
import org.apache.rocketmq.store.index.IndexFile;

/** {@code putKey(topic + "#" + key)} of every key of a file, into a fresh index file. */
final class PutKey {
    private static final int BLOCK = 1 << 16;
    private static final int WARMUP = 2_000_000;
    private static final long FIRST_TIMESTAMP = 1_700_000_000_000L;
    private static final int MESSAGE_SIZE = 1192;
    private static final int MESSAGES_PER_MS = 20;

    private PutKey() {
    }

    static Result run(Options options) throws Exception {
        boolean touched = Boolean.parseBoolean(options.text("touched"));
        Memory memory = new Memory(options);
        File directory = new File(options.text("scratch"));
        File fresh = new File(directory, "1");
        File written = new File(directory, "2");
        Result result = new Result();
        try (Keys keys = new Keys(options.text("keys"))) {
            int count = Math.min(keys.count, options.integer("count"));
            Rounds rounds = new Rounds(options);
            while (rounds.next()) {
                Files.remove(fresh);
                int here = rounds.isTimed() ? count : Math.min(count, WARMUP);
                memory.warm();
                long nanos = fill(fresh, options, keys, here);
                if (rounds.isTimed()) {
                    result.add("put", nanos, count);
                }
                if (touched && rounds.isTimed()) {
                    allocate(written, options);
                    result.add("put_touched", fill(written, options, keys, count), count);
                    Files.remove(written);
                }
            }
        }
        result.answer("files", Files.checksum(directory));
        return result;
    }

    /** How many nanoseconds the puts take; making the strings is not counted. */
    private static long fill(File file, Options options, Keys keys, int count) throws IOException {
        IndexFile index = new IndexFile(file.getPath(), options.integer("slots"), options.integer("entries"), 0, 0);
        long nanos = 0;
        for (int from = 0; from < count; from += BLOCK) {
            String[] block = keys.block(from, Math.min(from + BLOCK, count));
            long start = System.nanoTime();
            int stored = put(index, "TopicTest", block, from);
            nanos += System.nanoTime() - start;
            if (stored != block.length) {
                throw new IllegalStateException("full after " + (from + stored) + " keys");
            }
        }
        release(index);
        return nanos;
    }

    private static int put(IndexFile index, String topic, String[] keys, int from) {
        for (int i = 0; i < keys.length; i++) {
            long number = from + i;
            if (!index.putKey(topic + "#" + keys[i], number * MESSAGE_SIZE,
                FIRST_TIMESTAMP + number / MESSAGES_PER_MS)) {
                return i;
            }
        }
        return keys.length;
    }

    /** Unmaps, so that a removed file gives its pages back before the next round. The file's content is kept. */
    private static void release(IndexFile index) {
        try {
            Field field = IndexFile.class.getDeclaredField("mappedFile");
            field.setAccessible(true);
            ((MappedFile) field.get(index)).shutdown(1000);
        } catch (ReflectiveOperationException changed) {
            throw new IllegalStateException(changed);
        }
    }

    /** A file whose every page has been written before the first put. */
    private static void allocate(File file, Options options) throws IOException {
        long size = 40L + 4L * options.integer("slots") + 20L * options.integer("entries");
        try (RandomAccessFile access = new RandomAccessFile(file, "rw")) {
            MappedByteBuffer map = access.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, size);
            for (int at = 0; at < size; at += 4096) {
                map.put(at, (byte) 0);
            }
        }
    }
}
