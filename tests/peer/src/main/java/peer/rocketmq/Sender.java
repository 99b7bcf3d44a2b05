package peer.rocketmq;

import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import peer.Words;

/** The producers: single sends, batches, transactions, and a flood that ends when its broker dies. */
final class Sender {
    private final DefaultMQProducer producer = new DefaultMQProducer("peer-producer");
    private final TransactionMQProducer transactions = new TransactionMQProducer("peer-transactions");
    private final List<List<String>> acknowledged = new ArrayList<>();
    private Thread flood;

    Sender(String namesrv) throws Exception {
        transactions.setTransactionListener(new Decided());
        for (DefaultMQProducer each : new DefaultMQProducer[] {producer, transactions}) {
            each.setNamesrvAddr(namesrv);
            each.setSendMsgTimeout(60_000);
            each.start();
            lookSeldomForBatches(each);
        }
    }

    /** 5.x looks 200 times a second, with four threads, whether it has collected a batch; nobody here has it do so. */
    private static void lookSeldomForBatches(DefaultMQProducer producer) throws ReflectiveOperationException {
        for (Method each : DefaultMQProducer.class.getMethods()) {
            if (each.getName().equals("batchMaxDelayMs") && each.getParameterCount() == 1) { // not in 4.x
                each.invoke(producer, 10_000);
            }
        }
    }

    List<List<String>> send(List<String> words) throws Exception {
        Message message = message(words);
        int queue = Integer.parseInt(words.get(1));
        if (queue < 0) {
            return result(producer.send(message));
        }
        return result(producer.send(message, (queues, wanted, number) -> find(queues, (Integer) number), queue));
    }

    /** One request, one queue. */
    List<List<String>> batch(List<List<String>> lines) throws Exception {
        List<Message> messages = new ArrayList<>();
        for (List<String> words : lines) {
            messages.add(message(words));
        }
        int queue = Integer.parseInt(lines.get(0).get(1));
        return result(producer.send(messages, find(producer.fetchPublishMessageQueues(lines.get(0).get(0)), queue)));
    }

    List<List<String>> transaction(String decision, List<String> words) throws Exception {
        return result(transactions.sendMessageInTransaction(message(words), LocalTransactionState.valueOf(decision)));
    }

    /** Sends on and on, each message with one key {@code flood-<n>}, until the broker does not answer any more. */
    List<List<String>> flood(String topic) {
        acknowledged.clear();
        flood = new Thread(() -> {
            for (int number = 0;; number++) {
                String key = "flood-" + number;
                Message message = new Message(topic, "TagF", key, key.getBytes(StandardCharsets.UTF_8));
                try {
                    acknowledged.addAll(result(producer.send(message)));
                    Thread.sleep(4);
                } catch (Exception gone) {
                    return;
                }
            }
        });
        flood.start();
        return new ArrayList<>();
    }

    /** What the broker had acknowledged: row n is that of {@code flood-<n>}. */
    List<List<String>> flooded() throws InterruptedException {
        flood.join();
        return new ArrayList<>(acknowledged);
    }

    private static MessageQueue find(List<MessageQueue> queues, int number) {
        for (MessageQueue queue : queues) {
            if (queue.getQueueId() == number) {
                return queue;
            }
        }
        throw new IllegalArgumentException("no queue " + number + " in " + queues);
    }

    /** {@code topic queue tags keys delay-level flag body name value name value ...}. */
    private static Message message(List<String> words) {
        Message message = new Message(words.get(0), words.get(2), words.get(3), Integer.parseInt(words.get(5)),
            Base64.getDecoder().decode(words.get(6)), true);
        int delayLevel = Integer.parseInt(words.get(4));
        if (delayLevel > 0) {
            message.setDelayTimeLevel(delayLevel);
        }
        for (int i = 7; i < words.size(); i += 2) {
            message.putUserProperty(words.get(i), words.get(i + 1));
        }
        return message;
    }

    private static List<List<String>> result(SendResult sent) {
        return Words.one(sent.getSendStatus(), sent.getMsgId(), sent.getOffsetMsgId(),
            sent.getMessageQueue().getQueueId(), sent.getQueueOffset());
    }

    /** Every transaction ends as it was told when it was sent. */
    private static final class Decided implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object decision) {
            return (LocalTransactionState) decision;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            return LocalTransactionState.UNKNOW;
        }
    }
}
