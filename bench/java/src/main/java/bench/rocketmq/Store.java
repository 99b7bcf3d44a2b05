package bench.rocketmq;

import bench.Options;
import java.io.File;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** A {@code DefaultMessageStore} over a commit log that is given, which it must leave as it is, or its own. */
final class Store {
    private Store() {
    }

    static DefaultMessageStore over(File root, Options options) throws Exception {
        return open(config(root, options.text("log"), options));
    }

    static DefaultMessageStore open(MessageStoreConfig config) throws Exception {
        return new DefaultMessageStore(config, new BrokerStatsManager("bench", false),
            (topic, queueId, logicOffset, tagsCode, storeTime, bitMap, properties) -> { }, new BrokerConfig());
    }

    static MessageStoreConfig config(File root, String log, Options options) {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root.getPath());
        config.setStorePathCommitLog(log);
        config.setMappedFileSizeCommitLog(options.integer("file_size"));
        config.setMaxHashSlotNum(options.integer("slots"));
        config.setMaxIndexNum(options.integer("entries"));
        config.setHaListenPort(0);
        // The log is borrowed: nothing of it may expire, whatever the disk and the clock say.
        config.setDiskMaxUsedSpaceRatio(95);
        config.setCleanFileForciblyEnable(false);
        config.setFileReservedTime(24 * 365 * 100);
        return config;
    }
}
