package bench.kafka;

import bench.Files;
import bench.Memory;
import bench.Options;
import bench.Result;
import bench.Rounds;
import java.io.File;
import java.nio.file.Path;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

/** {@code LogSegment.recover} of one segment: what a broker does for it after an unclean end. */
final class Recover {
    private static final String SEGMENT = "00000000000000000000";
    private static final int TRANSACTION_MS = 900_000;
    private static final int EXPIRATION_MS = 86_400_000;

    private Recover() {
    }

    static Result run(Options options) throws Exception {
        File directory = new File(options.text("scratch"), "segments-0");
        Path log = directory.toPath().resolve(SEGMENT + ".log");
        java.nio.file.Files.createDirectory(directory.toPath());
        java.nio.file.Files.createLink(log, new File(options.text("log")).toPath());
        Result result = new Result();
        Memory memory = new Memory(options);
        Rounds rounds = new Rounds(options);
        long size = log.toFile().length();
        while (rounds.next()) {
            memory.warm();
            LogSegment segment = LogSegment.open(directory, 0, new LogConfig(Map.of()), Time.SYSTEM, true, 0, false, "");
            long start = System.nanoTime();
            int truncated = segment.recover(producers(directory), epochs(directory));
            long nanos = System.nanoTime() - start;
            segment.close();
            if (rounds.isTimed()) {
                result.add("recover", nanos, size);
            }
            if (truncated != 0) {
                throw new IllegalStateException("cut: " + truncated + " bytes");
            }
        }
        java.nio.file.Files.delete(log);
        new File(directory, "leader-epoch-checkpoint").delete();
        result.answer("files", Files.checksum(directory));
        return result;
    }

    private static ProducerStateManager producers(File directory) throws Exception {
        return new ProducerStateManager(new TopicPartition("segments", 0), directory, TRANSACTION_MS,
            new ProducerStateManagerConfig(EXPIRATION_MS, false), Time.SYSTEM);
    }

    private static LeaderEpochFileCache epochs(File directory) throws Exception {
        LeaderEpochCheckpointFile checkpoint = new LeaderEpochCheckpointFile(
            new File(directory, "leader-epoch-checkpoint"), new LogDirFailureChannel(1));
        return new LeaderEpochFileCache(new TopicPartition("segments", 0), checkpoint, new KafkaScheduler(1));
    }
}
