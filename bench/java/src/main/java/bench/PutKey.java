package bench;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import org.apache.rocketmq.store.index.IndexFile;

/** {@code putKey(topic + "#" + key)} of every key of a file, into a fresh index file. */
final class PutKey {
    private static final int BLOCK = 1 << 16;
    private static final long FIRST_TIMESTAMP = 1_700_000_000_000L;
    private static final int MESSAGE_SIZE = 1192;
    private static final int MESSAGES_PER_MS = 20;

    private PutKey() {
    }

    static Result run(Options options) throws Exception {
        int slots = options.integer("slots");
        int entries = options.integer("entries");
        int rounds = options.integer("rounds");
        boolean touched = Boolean.parseBoolean(options.text("touched", "false"));
        Memory memory = new Memory(options);
        File directory = new File(options.text("scratch"));
        Result result = new Result();
        try (Keys keys = new Keys(options.text("keys"))) {
            int count = Math.min(keys.count, options.integer("count"));
            fill(directory, "1", slots, entries, keys, Math.min(count, options.integer("warmup")), null);
            for (int round = 0; round < rounds; round++) {
                memory.warm();
                fill(directory, "1", slots, entries, keys, count, nanos -> result.add("put", nanos, count));
                if (touched) {
                    allocate(new File(directory, "2"), 40L + 4L * slots + 20L * entries);
                    fill(directory, "2", slots, entries, keys, count, nanos -> result.add("put_touched", nanos, count));
                }
                if (round == rounds - 1) {
                    result.answer("files", Files.checksums(directory).split(",")[0]);
                }
                Files.remove(new File(directory, "1"));
                Files.remove(new File(directory, "2"));
            }
        }
        return result;
    }

    private interface Report {
        void took(long nanos);
    }

    private static void fill(File directory, String name, int slots, int entries, Keys keys, int count, Report report)
        throws IOException {
        File file = new File(directory, name);
        IndexFile index = new IndexFile(file.getPath(), slots, entries, 0, 0);
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
        if (report != null) {
            report.took(nanos);
        }
        release(index);
        if (report == null) {
            Files.remove(file);
        }
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
    static void release(IndexFile index) {
        try {
            java.lang.reflect.Field field = IndexFile.class.getDeclaredField("mappedFile");
            field.setAccessible(true);
            ((org.apache.rocketmq.store.MappedFile) field.get(index)).shutdown(1000);
        } catch (ReflectiveOperationException changed) {
            throw new IllegalStateException(changed);
        }
    }

    /** A file whose every page has been written before the first put. */
    private static void allocate(File file, long size) throws IOException {
        try (RandomAccessFile access = new RandomAccessFile(file, "rw")) {
            MappedByteBuffer map = access.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, size);
            for (int at = 0; at < size; at += 4096) {
                map.put(at, (byte) 0);
            }
        }
    }
}
