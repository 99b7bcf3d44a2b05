package peer.kafka;

import java.util.List;
import peer.Conversation;

/** A client in a JVM of its own: {@code Driver LOG BROKER_ADDRESS}. */
public final class Driver implements Conversation.Partner {
    private final Sender sender;
    private final Reader reader;
    private final Administrator administrator;
    private final Groups groups;

    private Driver(String address) {
        sender = new Sender(address);
        reader = new Reader(address);
        administrator = new Administrator(address);
        groups = new Groups(address);
    }

    public static void main(String[] argv) throws Exception {
        Conversation.hold(argv[0], () -> new Driver(argv[1]));
    }

    @Override
    public List<List<String>> answer(List<String> request, Conversation more) throws Exception {
        List<String> rest = request.subList(1, request.size());
        switch (request.get(0)) {
            case "topic":
                return administrator.topic(rest);
            case "ready":
                return administrator.ready(rest);
            case "special":
                return administrator.special(rest.get(0));
            case "producer":
                return sender.producer(rest);
            case "send":
                return sender.send(rest.get(0), rest.get(1), more.further(Integer.parseInt(rest.get(2))));
            case "begin":
                return sender.begin(rest.get(0));
            case "end":
                return sender.end(rest.get(0), rest.get(1));
            case "flood":
                return sender.flood(rest.get(0), Long.parseLong(rest.get(1)), rest.subList(2, rest.size()));
            case "drop":
                return sender.drop();
            case "close":
                return sender.close();
            case "consume":
                return reader.consume(rest.get(0), rest.get(1));
            case "seek":
                return reader.seek(rest.get(0), rest.get(1), rest.subList(2, rest.size()));
            case "probe":
                return reader.probe(rest.get(0), Integer.parseInt(rest.get(1)), rest.subList(2, rest.size()));
            case "commit":
                return groups.commit(rest.get(0), rest.get(1), rest.subList(2, rest.size()));
            case "offsets":
                return groups.offsets(rest.get(0));
            case "forget":
                return groups.forget(rest.get(0), rest.get(1));
            case "producers":
                return groups.producers(rest.get(0));
            case "transaction":
                return groups.transaction(rest.get(0));
            case "times":
                return reader.times(rest.get(0), rest.subList(1, rest.size()));
            default:
                throw new IllegalArgumentException("no such request: " + request.get(0));
        }
    }
}
