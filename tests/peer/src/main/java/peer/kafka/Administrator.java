package peer.kafka;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.TopicPartition;
import peer.Words;

/** Makes topics of one partition, waits for them, and asks for the ends of their logs. */
final class Administrator {
    private static final long PATIENCE = 600_000;

    private final Admin admin;

    Administrator(String address) {
        Properties properties = new Properties();
        properties.put(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        properties.put(AdminClientConfig.RECONNECT_BACKOFF_MAX_MS_CONFIG, 100);
        admin = Admin.create(properties);
    }

    /** {@code name setting value setting value ...}. */
    List<List<String>> topic(List<String> words) throws Exception {
        Map<String, String> settings = new HashMap<>();
        for (int i = 1; i < words.size(); i += 2) {
            settings.put(words.get(i), words.get(i + 1));
        }
        NewTopic topic = new NewTopic(words.get(0), 1, (short) 1).configs(settings);
        admin.createTopics(Collections.singletonList(topic)).all().get();
        return ready(words.subList(0, 1));
    }

    /** Until the broker answers, and leads the partitions of these topics. */
    List<List<String>> ready(List<String> topics) throws Exception {
        long until = System.currentTimeMillis() + PATIENCE;
        while (true) {
            try {
                Map<String, TopicDescription> found = admin.describeTopics(topics).allTopicNames().get();
                if (found.values().stream().allMatch(topic -> topic.partitions().get(0).leader() != null)) {
                    return new ArrayList<>();
                }
            } catch (java.util.concurrent.ExecutionException notYet) {
                if (System.currentTimeMillis() > until) {
                    throw notYet;
                }
            }
            if (System.currentTimeMillis() > until) {
                throw new IllegalStateException("nobody leads " + topics);
            }
            Thread.sleep(50);
        }
    }

    /** Offset and timestamp of the end, of the start, and of the largest timestamp: -1, -2 and -3 of list-offsets. */
    List<List<String>> special(String topic) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        List<List<String>> rows = new ArrayList<>();
        for (OffsetSpec spec : List.of(OffsetSpec.latest(), OffsetSpec.earliest(), OffsetSpec.maxTimestamp())) {
            ListOffsetsResultInfo found =
                admin.listOffsets(Collections.singletonMap(partition, spec)).partitionResult(partition).get();
            rows.add(Words.row(found.offset(), found.timestamp()));
        }
        return rows;
    }
}
