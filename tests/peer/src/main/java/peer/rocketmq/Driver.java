package peer.rocketmq;

import java.util.List;
import org.apache.rocketmq.namesrv.NamesrvStartup;
import peer.Conversation;

/** A name server and one client in one JVM: {@code Driver LOG NAMESRV_CONF NAMESRV_ADDRESS}. */
public final class Driver implements Conversation.Partner {
    private final Sender sender;
    private final Reader reader;
    private final Admin admin;

    private Driver(String namesrv) throws Exception {
        sender = new Sender(namesrv);
        reader = new Reader(namesrv);
        admin = new Admin(namesrv);
    }

    public static void main(String[] argv) throws Exception {
        Conversation.hold(argv[0], () -> {
            NamesrvStartup.main0(new String[] {"-c", argv[1]});
            return new Driver(argv[2]);
        });
    }

    @Override
    public List<List<String>> answer(List<String> request, Conversation more) throws Exception {
        List<String> rest = request.subList(1, request.size());
        switch (request.get(0)) {
            case "send":
                return sender.send(rest);
            case "batch":
                return sender.batch(more.further(Integer.parseInt(rest.get(0))));
            case "transaction":
                return sender.transaction(rest.get(0), rest.subList(1, rest.size()));
            case "flood":
                return sender.flood(rest.get(0));
            case "flooded":
                return sender.flooded();
            case "pull":
                return reader.pull(rest);
            case "offsets":
                return reader.offsets(rest);
            case "search":
                return reader.search(rest);
            case "topic":
                return admin.topic(rest);
            case "route":
                return admin.route(rest.get(0));
            case "key":
                return admin.key(rest.get(0), rest.get(1));
            case "unique":
                return reader.unique(rest.get(0), rest.get(1));
            case "id":
                return admin.id(rest.get(0), rest.get(1));
            case "mqadmin":
                return admin.mqadmin(rest);
            default:
                throw new IllegalArgumentException("no such request: " + request.get(0));
        }
    }
}
