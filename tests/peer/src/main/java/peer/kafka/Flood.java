package peer.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import peer.Words;

/** Several producers that send batch after batch into one partition, until their broker is gone. */
final class Flood {
    private static final int LARGE = 60_000;
    private static final int SMALL = 300;
    private static final long PAUSE = 5; // ms: some segments in the time of a few looks, and not hundreds

    private final AtomicLong time = new AtomicLong();
    private final List<List<String>> acknowledged = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();
    private volatile boolean ended;

    /** One more producer; the times of all of them go up together. */
    void begin(String name, KafkaProducer<byte[], byte[]> producer, String topic, long firstTime) {
        time.accumulateAndGet(firstTime, Math::max);
        Thread thread = new Thread(() -> send(producer, topic, new Random(name.hashCode())), "flood-" + name);
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    /** No further batch; one that waits for its broker waits until its producer is closed. */
    void end() {
        ended = true;
    }

    /** Offset, timestamp and value of each record that a broker has. */
    List<List<String>> acknowledged() throws InterruptedException {
        for (Thread thread : threads) {
            thread.join();
        }
        return acknowledged;
    }

    private void send(KafkaProducer<byte[], byte[]> producer, String topic, Random source) {
        try {
            while (!ended) {
                List<ProducerRecord<byte[], byte[]>> records = batch(topic, source);
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (ProducerRecord<byte[], byte[]> record : records) {
                    sent.add(producer.send(record));
                }
                producer.flush();
                for (int i = 0; i < sent.size(); i++) {
                    RecordMetadata at = sent.get(i).get();
                    acknowledge(Words.row(at.offset(), at.timestamp(), Bytes.word(records.get(i).value())));
                }
                Thread.sleep(PAUSE);
            }
        } catch (KafkaException | IllegalStateException | InterruptedException | ExecutionException gone) {
            System.err.println("the flood ends: " + gone);
        }
    }

    private List<ProducerRecord<byte[], byte[]>> batch(String topic, Random source) {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        int size = source.nextInt(40) == 0 ? LARGE : SMALL;
        for (int left = 1 + source.nextInt(8); left > 0; left--) {
            byte[] value = new byte[source.nextInt(size)];
            source.nextBytes(value);
            Arrays.fill(value, value.length / 2, value.length, (byte) left); // so that there is something to compress
            records.add(new ProducerRecord<>(topic, 0, time.addAndGet(source.nextInt(20)), null, value));
        }
        return records;
    }

    private void acknowledge(List<String> row) {
        synchronized (acknowledged) {
            acknowledged.add(row);
        }
    }
}
