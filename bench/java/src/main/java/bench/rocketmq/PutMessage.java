package bench.rocketmq;

import bench.Files;
import bench.Memory;
import bench.Options;
import bench.Result;
import bench.Rounds;
import java.io.File;
import java.net.InetSocketAddress;
import java.util.Arrays;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.PutMessageStatus;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** {@code DefaultMessageStore.putMessage} of messages that are ready, one thread, asynchronous flush, a running store. */
final class PutMessage {
    private static final int BLOCK = 1 << 12;

    private PutMessage() {
    }

    static Result run(Options options) throws Exception {
        Result result = new Result();
        Memory memory = new Memory(options);
        Rounds rounds = new Rounds(options);
        int count = options.integer("messages");
        int number = 0;
        while (rounds.next()) {
            // A store's threads outlive it by seconds: each round has a directory of its own.
            File root = new File(options.text("scratch"), "append-" + number++);
            MessageStoreConfig config = Store.config(root, new File(root, "commitlog").getPath(), options);
            DefaultMessageStore store = Store.open(config);
            if (!store.load()) {
                throw new IllegalStateException("the store does not load");
            }
            store.start();
            memory.warm();
            long nanos = fill(store, options, count);
            if (rounds.isTimed()) {
                result.add("append", nanos, count);
            }
            result.answer("end", store.getMaxPhyOffset());
            store.shutdown();
            Files.remove(root);
        }
        return result;
    }

    /** How many nanoseconds the puts take; making the messages is not counted. */
    private static long fill(DefaultMessageStore store, Options options, int count) {
        byte[] body = new byte[options.integer("body")];
        Arrays.fill(body, (byte) 'x');
        long nanos = 0;
        for (int from = 0; from < count; from += BLOCK) {
            MessageExtBrokerInner[] block = messages(from, Math.min(from + BLOCK, count), body);
            long start = System.nanoTime();
            put(store, block);
            nanos += System.nanoTime() - start;
        }
        return nanos;
    }

    private static void put(DefaultMessageStore store, MessageExtBrokerInner[] block) {
        for (MessageExtBrokerInner message : block) {
            PutMessageStatus status = store.putMessage(message).getPutMessageStatus();
            if (status != PutMessageStatus.PUT_OK) {
                throw new IllegalStateException("not stored: " + status);
            }
        }
    }

    private static MessageExtBrokerInner[] messages(int from, int to, byte[] body) {
        InetSocketAddress host = new InetSocketAddress("127.0.0.1", 10911);
        MessageExtBrokerInner[] block = new MessageExtBrokerInner[to - from];
        for (int i = 0; i < block.length; i++) {
            MessageExtBrokerInner message = new MessageExtBrokerInner();
            message.setTopic("TopicTest");
            message.setQueueId(0);
            message.setBody(body);
            message.setTags("TagA");
            message.setKeys(String.format("K%016X", from + i));
            MessageAccessor.putProperty(message, "UNIQ_KEY", String.format("%032X", from + i));
            message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
            message.setBornTimestamp(System.currentTimeMillis());
            message.setBornHost(host);
            message.setStoreHost(host);
            message.setTagsCode("TagA".hashCode());
            block[i] = message;
        }
        return block;
    }
}
