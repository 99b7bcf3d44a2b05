package bench.rocketmq;

import bench.Options;
import bench.Result;
import bench.Rounds;
import java.io.File;
import java.nio.file.Path;
import org.apache.rocketmq.common.filter.FilterAPI;
import org.apache.rocketmq.store.DefaultMessageFilter;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.MessageFilter;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/**
 * {@code DefaultMessageStore.getMessage} with a tag, from the first to the last offset of a queue. What it gives are
 * slices of the log, not decoded: that is all that a broker does.
 */
final class GetMessage {
    private long found;
    private long offsets;

    static Result run(Options options) throws Exception {
        File root = new File(options.text("scratch"), "get");
        Path queues = new File(root, "consumequeue").toPath();
        if (!root.mkdirs()) {
            throw new IllegalStateException("cannot make " + root);
        }
        java.nio.file.Files.createSymbolicLink(queues, new File(options.text("queues")).toPath());
        int batch = options.integer("batch");
        DefaultMessageStore store = Store.open(config(root, batch, options));
        if (!store.load()) {
            throw new IllegalStateException("the store does not load");
        }
        store.start(); // or it answers nothing
        MessageFilter filter =
            new DefaultMessageFilter(FilterAPI.buildSubscriptionData("TopicTest", options.text("tags")));
        Result result = new Result();
        Rounds rounds = new Rounds(options);
        while (rounds.next()) {
            GetMessage run = new GetMessage();
            long start = System.nanoTime();
            run.consume(store, filter, batch);
            long nanos = System.nanoTime() - start;
            if (rounds.isTimed()) {
                result.add("get", nanos, run.found);
            }
            result.answer("found", run.found);
            result.answer("offsets", run.offsets);
        }
        return result;
    }

    private static MessageStoreConfig config(File root, int batch, Options options) {
        MessageStoreConfig config = Store.config(root, options.text("log"), options);
        // A broker's limits of one answer, lifted: the batch alone decides.
        config.setMaxTransferCountOnMessageInMemory(batch);
        config.setMaxTransferCountOnMessageInDisk(batch);
        config.setMaxTransferBytesOnMessageInMemory(Integer.MAX_VALUE);
        config.setMaxTransferBytesOnMessageInDisk(Integer.MAX_VALUE);
        return config;
    }

    private void consume(DefaultMessageStore store, MessageFilter filter, int batch) {
        long at = 0;
        long stop = store.getMaxOffsetInQueue("TopicTest", 0);
        while (at < stop) {
            GetMessageResult got = store.getMessage("group", "TopicTest", 0, at, batch, filter);
            for (SelectMappedBufferResult message : got.getMessageMapedList()) {
                offsets += message.getStartOffset();
            }
            found += got.getMessageCount();
            got.release();
            at = got.getNextBeginOffset();
        }
    }
}
