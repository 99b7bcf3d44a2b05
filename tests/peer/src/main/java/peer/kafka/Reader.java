package peer.kafka;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import peer.Words;

/** A consumer for each isolation level, over partition 0 of a topic. */
final class Reader {
    private static final Duration PATIENCE = Duration.ofSeconds(1);
    private static final Duration BRIEFLY = Duration.ofMillis(200);

    private final String address;
    private final Map<String, KafkaConsumer<byte[], byte[]>> consumers = new HashMap<>();

    Reader(String address) {
        this.address = address;
    }

    /** Every record, from the first to the last: a row each. */
    List<List<String>> consume(String topic, String isolation) {
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaConsumer<byte[], byte[]> consumer = on(partition, isolation);
        consumer.seekToBeginning(Collections.singletonList(partition));
        long end = end(consumer, partition);
        List<List<String>> rows = new ArrayList<>();
        while (consumer.position(partition) < end) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(PATIENCE)) {
                rows.add(row(record));
            }
        }
        return rows;
    }

    /** The offset of the first record at or behind each of the offsets; -1: none. */
    List<List<String>> seek(String topic, String isolation, List<String> offsets) {
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaConsumer<byte[], byte[]> consumer = on(partition, isolation);
        long end = end(consumer, partition);
        List<List<String>> rows = new ArrayList<>();
        for (String offset : offsets) {
            consumer.seek(partition, Long.parseLong(offset));
            long first = -1;
            while (first < 0 && consumer.position(partition) < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(PATIENCE)) {
                    first = first < 0 ? record.offset() : first;
                }
            }
            rows.add(Words.row(first));
        }
        return rows;
    }

    /**
     * Of a damaged log, the first record at or behind each of the first {@code seeks} numbers, and at or after each of
     * the other ones, which are times; -1: none, or the name of what was thrown.
     */
    List<List<String>> probe(String topic, int seeks, List<String> numbers) {
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaConsumer<byte[], byte[]> consumer = on(partition, "read_uncommitted");
        List<List<String>> rows = new ArrayList<>();
        for (int i = 0; i < numbers.size(); i++) {
            long number = Long.parseLong(numbers.get(i));
            try {
                rows.add(Words.row(i < seeks ? first(consumer, partition, number) : atTime(consumer, partition, number)));
            } catch (KafkaException failure) {
                rows.add(Words.row(failure.getClass().getSimpleName()));
            }
        }
        return rows;
    }

    private static long first(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, long offset) {
        consumer.seek(partition, offset);
        for (int i = 0; i < 5; i++) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(BRIEFLY)) {
                return record.offset();
            }
        }
        return -1;
    }

    private static long atTime(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, long time) {
        OffsetAndTimestamp found =
            consumer.offsetsForTimes(Collections.singletonMap(partition, time), PATIENCE).get(partition);
        return found == null ? -1 : found.offset();
    }

    /** {@code offsetsForTimes}: offset and timestamp, or twice -1, for each of the times. */
    List<List<String>> times(String topic, List<String> times) {
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaConsumer<byte[], byte[]> consumer = on(partition, "read_uncommitted");
        List<List<String>> rows = new ArrayList<>();
        for (String time : times) {
            OffsetAndTimestamp found =
                consumer.offsetsForTimes(Collections.singletonMap(partition, Long.valueOf(time))).get(partition);
            rows.add(found == null ? Words.row(-1, -1) : Words.row(found.offset(), found.timestamp()));
        }
        return rows;
    }

    private KafkaConsumer<byte[], byte[]> on(TopicPartition partition, String isolation) {
        KafkaConsumer<byte[], byte[]> consumer = consumers.computeIfAbsent(isolation, this::consumer);
        consumer.assign(Collections.singletonList(partition));
        return consumer;
    }

    private KafkaConsumer<byte[], byte[]> consumer(String isolation) {
        Properties properties = new Properties();
        properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        properties.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, isolation);
        properties.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, 20);
        properties.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 1 << 16); // several answers of every partition
        properties.put(ConsumerConfig.RECONNECT_BACKOFF_MAX_MS_CONFIG, 100); // the broker is often restarted
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        return new KafkaConsumer<>(properties, bytes, bytes);
    }

    private static long end(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition) {
        return consumer.endOffsets(Collections.singletonList(partition)).get(partition);
    }

    /** The fields in the order of {@code Record} in client.py, then name and value of each header. */
    private static List<String> row(ConsumerRecord<byte[], byte[]> record) {
        List<String> row = Words.row(record.offset(), record.timestamp(), record.timestampType(),
            Bytes.word(record.key()), Bytes.word(record.value()));
        for (Header header : record.headers()) {
            row.add(header.key());
            row.add(Bytes.word(header.value()));
        }
        return row;
    }
}
