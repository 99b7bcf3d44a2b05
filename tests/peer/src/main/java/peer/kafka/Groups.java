package peer.kafka;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import peer.Words;

/** Consumers in groups, and what the broker says of the groups' offsets and of transactions. */
final class Groups {
    private final String address;
    private final Admin admin;

    Groups(String address) {
        this.address = address;
        Properties properties = new Properties();
        properties.put(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        admin = Admin.create(properties);
    }

    /** A member of a group reads a topic and commits, for its partition 0, offsets with their metadata, in turn. */
    List<List<String>> commit(String group, String topic, List<String> offsets) {
        Properties properties = new Properties();
        properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        properties.put(ConsumerConfig.GROUP_ID_CONFIG, group);
        properties.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, bytes, bytes)) {
            consumer.subscribe(Collections.singletonList(topic));
            while (consumer.poll(Duration.ofMillis(100)).isEmpty()) {
                // until this member has its partition
            }
            for (int i = 0; i < offsets.size(); i += 3) {
                int epoch = Integer.parseInt(offsets.get(i + 1));
                Optional<Integer> known = epoch < 0 ? Optional.empty() : Optional.of(epoch);
                consumer.commitSync(Collections.singletonMap(new TopicPartition(topic, 0),
                    new OffsetAndMetadata(Long.parseLong(offsets.get(i)), known, offsets.get(i + 2))));
            }
        }
        return new ArrayList<>();
    }

    /** Topic, partition, offset, leader epoch (-1: none) and metadata of each commit of a group, by name. */
    List<List<String>> offsets(String group) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> found =
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        Map<String, List<String>> rows = new TreeMap<>();
        found.forEach((partition, offset) -> rows.put(partition.toString(), Words.row(partition.topic(),
            partition.partition(), offset.offset(), offset.leaderEpoch().orElse(-1), offset.metadata())));
        return new ArrayList<>(rows.values());
    }

    /** The commit of a group for partition 0 of a topic is deleted. */
    List<List<String>> forget(String group, String topic) throws Exception {
        admin.deleteConsumerGroupOffsets(group, Collections.singleton(new TopicPartition(topic, 0))).all().get();
        return new ArrayList<>();
    }

    /** Where readers of committed records stop; then each producer, and where its open transaction began (-1: none). */
    List<List<String>> producers(String topic) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        ListOffsetsOptions committed = new ListOffsetsOptions(IsolationLevel.READ_COMMITTED);
        List<List<String>> rows = Words.one(admin.listOffsets(
            Collections.singletonMap(partition, OffsetSpec.latest()), committed).partitionResult(partition).get().offset());
        admin.describeProducers(Collections.singleton(partition)).partitionResult(partition).get().activeProducers()
            .forEach(each -> rows.add(Words.row(each.producerId(), each.currentTransactionStartOffset().orElse(-1))));
        return rows;
    }

    /** State, producer id, epoch, timeout, start time (-1: none) and partitions of a transactional id. */
    List<List<String>> transaction(String id) throws Exception {
        TransactionDescription found =
            admin.describeTransactions(Collections.singleton(id)).description(id).get();
        List<String> partitions = new ArrayList<>();
        found.topicPartitions().forEach(partition -> partitions.add(partition.toString()));
        Collections.sort(partitions);
        return Words.one(found.state().toString(), found.producerId(), found.producerEpoch(),
            found.transactionTimeoutMs(), found.transactionStartTimeMs().orElse(-1), String.join(", ", partitions));
    }
}
