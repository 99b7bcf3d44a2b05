package peer.rocketmq;

import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.BrokerStartup;

/**
 * A broker, started as its own {@code main} does, that its name server knows within a second.
 *
 * <p>5.x registers at the end of its start, mostly before it has reached a name server, and again only 10 s later.
 */
public final class Broker {
    private static final int TIMES = 10;
    private static final long APART = 100; // milliseconds

    private Broker() {
    }

    public static void main(String[] argv) throws InterruptedException {
        BrokerController broker = BrokerStartup.start(BrokerStartup.createBrokerController(argv));
        for (int time = 0; time < TIMES; time++) {
            Thread.sleep(APART);
            broker.registerBrokerAll(true, false, true);
        }
    }
}
