package peer.kafka;

import kafka.Kafka;
import kafka.tools.StorageTool;

/** A broker that is its own controller: {@code Broker CLUSTER_ID PROPERTIES}. Its log dir is formatted at first. */
public final class Broker {
    private Broker() {
    }

    public static void main(String[] argv) throws Exception {
        String[] format = {"format", "--ignore-formatted", "-t", argv[0], "-c", argv[1]};
        int status = StorageTool.execute(format, System.out);
        if (status != 0) {
            throw new IllegalStateException("the log dir was not formatted: " + status);
        }
        Kafka.main(new String[] {argv[1]});
    }
}
