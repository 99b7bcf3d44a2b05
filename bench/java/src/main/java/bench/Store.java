package bench;

import java.io.File;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** A {@code DefaultMessageStore} over a given commit log, which it must leave as it is. */
final class Store {
    private Store() {
    }

    static DefaultMessageStore over(File root, Options options) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root.getPath());
        config.setStorePathCommitLog(options.text("log"));
        config.setMappedFileSizeCommitLog(options.integer("file_size"));
        config.setMaxHashSlotNum(options.integer("slots"));
        config.setMaxIndexNum(options.integer("entries"));
        config.setHaListenPort(0);
        // The log is borrowed: nothing of it may expire, whatever the disk and the clock say.
        config.setDiskMaxUsedSpaceRatio(95);
        config.setCleanFileForciblyEnable(false);
        config.setFileReservedTime(24 * 365 * 100);
        return new DefaultMessageStore(config, new BrokerStatsManager("bench", false),
            (topic, queueId, logicOffset, tagsCode, storeTime, bitMap, properties) -> { }, new BrokerConfig());
    }
}
