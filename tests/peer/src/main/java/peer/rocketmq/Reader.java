package peer.rocketmq;

import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.message.MessageQueue;
import peer.Words;

/** A consumer that says itself from where it reads. */
@SuppressWarnings("deprecation")
final class Reader {
    private final DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("peer-consumer");

    Reader(String namesrv) throws Exception {
        consumer.setNamesrvAddr(namesrv);
        consumer.start();
    }

    /** {@code topic broker queue expression offset count}: a row of status, next, minimum, maximum; then messages. */
    List<List<String>> pull(List<String> words) throws Exception {
        PullResult pulled = consumer.pull(queue(words), words.get(3), Long.parseLong(words.get(4)),
            Integer.parseInt(words.get(5)));
        List<List<String>> rows = Words.one(pulled.getPullStatus(), pulled.getNextBeginOffset(),
            pulled.getMinOffset(), pulled.getMaxOffset());
        if (pulled.getMsgFoundList() != null) {
            rows.addAll(Messages.rows(pulled.getMsgFoundList()));
        }
        return rows;
    }

    /** {@code topic broker queue}: the minimum and maximum offsets. */
    List<List<String>> offsets(List<String> words) throws Exception {
        MessageQueue queue = queue(words);
        return Words.one(consumer.minOffset(queue), consumer.maxOffset(queue));
    }

    /** {@code topic broker queue time}: the offset of that time. */
    List<List<String>> search(List<String> words) throws Exception {
        return Words.one(consumer.searchOffset(queue(words), Long.parseLong(words.get(3))));
    }

    /** By unique key, whatever its time: the consumer's own call looks only from the time in the key on. */
    List<List<String>> unique(String topic, String uniqKey) throws Exception {
        return Admin.found(() -> consumer.getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory()
            .getMQAdminImpl().queryMessageByUniqKey(topic, uniqKey, 32, 0, Long.MAX_VALUE));
    }

    private static MessageQueue queue(List<String> words) {
        return new MessageQueue(words.get(0), words.get(1), Integer.parseInt(words.get(2)));
    }
}
