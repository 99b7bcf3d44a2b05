package peer.kafka;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import peer.Words;

/** Producers by name. What is sent together becomes one batch. */
final class Sender {
    private static final int NEVER = 60_000;
    private static final int BATCH = 1 << 20;
    private static final int OPEN = 900_000;

    private final String address;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Flood flood = new Flood();

    Sender(String address) {
        this.address = address;
    }

    /** {@code name codec plain|idempotent|transactional}. */
    List<List<String>> producer(List<String> words) {
        Properties properties = new Properties();
        properties.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        properties.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, words.get(1));
        properties.put(ProducerConfig.ACKS_CONFIG, "all");
        properties.put(ProducerConfig.LINGER_MS_CONFIG, NEVER);
        properties.put(ProducerConfig.BATCH_SIZE_CONFIG, BATCH);
        properties.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, !words.get(2).equals("plain"));
        boolean transactional = words.get(2).equals("transactional");
        if (transactional) {
            properties.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, words.get(0));
            properties.put(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, OPEN); // longer than any test leaves one open
        }
        ByteArraySerializer bytes = new ByteArraySerializer();
        KafkaProducer<byte[], byte[]> made = new KafkaProducer<>(properties, bytes, bytes);
        producers.put(words.get(0), made);
        if (transactional) {
            made.initTransactions();
        }
        return new ArrayList<>();
    }

    /** A line each: {@code timestamp key value name value name value ...}; a row each: offset and timestamp. */
    List<List<String>> send(String name, String topic, List<List<String>> lines) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producers.get(name);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (List<String> words : lines) {
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, 0, Long.valueOf(words.get(0)),
                Bytes.of(words.get(1)), Bytes.of(words.get(2)));
            for (int i = 3; i < words.size(); i += 2) {
                record.headers().add(words.get(i), Bytes.of(words.get(i + 1)));
            }
            sent.add(producer.send(record));
        }
        producer.flush();
        List<List<String>> rows = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            rows.add(Words.row(each.get().offset(), each.get().timestamp()));
        }
        return rows;
    }

    List<List<String>> begin(String name) {
        producers.get(name).beginTransaction();
        return new ArrayList<>();
    }

    List<List<String>> end(String name, String decision) {
        if (decision.equals("commit")) {
            producers.get(name).commitTransaction();
        } else {
            producers.get(name).abortTransaction();
        }
        return new ArrayList<>();
    }

    /** Begins to send, with a thread for each of the producers. */
    List<List<String>> flood(String topic, long firstTime, List<String> names) {
        for (String name : names) {
            flood.begin(name, producers.get(name), topic, firstTime);
        }
        return new ArrayList<>();
    }

    /** All of them, with what is not sent yet: for a broker that is gone. A row for each record of the flood. */
    List<List<String>> drop() throws InterruptedException {
        flood.end();
        producers.values().forEach(producer -> producer.close(Duration.ZERO));
        producers.clear();
        return flood.acknowledged();
    }

    /** All of them: nothing is written any more. */
    List<List<String>> close() {
        producers.values().forEach(KafkaProducer::close);
        producers.clear();
        return new ArrayList<>();
    }
}
