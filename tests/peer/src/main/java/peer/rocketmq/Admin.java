package peer.rocketmq;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** What {@code mqadmin} asks of a broker: by its own library, and its own commands with what they print. */
final class Admin {
    private static final int NO_MESSAGE = 208;
    private static final long PATIENCE = 600_000;

    interface Query {
        QueryResult run() throws Exception;
    }

    private final DefaultMQAdminExt admin = new DefaultMQAdminExt();
    private final String namesrv;

    Admin(String namesrv) throws Exception {
        this.namesrv = namesrv;
        admin.setNamesrvAddr(namesrv);
        admin.start();
    }

    /** {@code address name queues}: makes a topic, and waits until the name server knows it. */
    List<List<String>> topic(List<String> words) throws Exception {
        int queues = Integer.parseInt(words.get(2));
        TopicConfig config = new TopicConfig(words.get(1));
        config.setReadQueueNums(queues);
        config.setWriteQueueNums(queues);
        admin.createAndUpdateTopicConfig(words.get(0), config);
        return route(words.get(1));
    }

    /** Waits until the name server knows the topic. */
    List<List<String>> route(String topic) throws Exception {
        long until = System.currentTimeMillis() + PATIENCE;
        while (true) {
            try {
                admin.examineTopicRouteInfo(topic);
                return new ArrayList<>();
            } catch (MQClientException unknown) {
                if (System.currentTimeMillis() > until) {
                    throw unknown;
                }
                Thread.sleep(50);
            }
        }
    }

    List<List<String>> key(String topic, String key) throws Exception {
        return found(() -> admin.queryMessage(topic, key, 64, 0, Long.MAX_VALUE));
    }

    List<List<String>> id(String topic, String offsetId) throws Exception {
        return Messages.rows(Collections.singletonList(admin.viewMessage(topic, offsetId)));
    }

    /** The lines that a command of {@code mqadmin} prints. */
    List<List<String>> mqadmin(List<String> arguments) throws Exception {
        forgetCommands();
        List<String> all = new ArrayList<>(arguments);
        Collections.addAll(all, "-n", namesrv);
        PrintStream log = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, "UTF-8"));
        try {
            MQAdminStartup.main0(all.toArray(new String[0]), null);
        } finally {
            System.setOut(log);
        }
        List<List<String>> rows = new ArrayList<>();
        for (String line : printed.toString("UTF-8").split("\n")) {
            rows.add(Collections.singletonList(line));
        }
        return rows;
    }

    /** A command object of theirs works once; {@code main0} makes new ones, but takes the first of each name. */
    private static void forgetCommands() throws ReflectiveOperationException {
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            if (field.getType() == List.class) { // its name differs between versions
                field.setAccessible(true);
                ((List<?>) field.get(null)).clear();
            }
        }
    }

    /** The messages that a query finds; "no message" is none. */
    static List<List<String>> found(Query query) throws Exception {
        try {
            return Messages.rows(query.run().getMessageList());
        } catch (MQClientException failure) {
            if (failure.getResponseCode() == NO_MESSAGE) {
                return new ArrayList<>();
            }
            throw failure;
        }
    }
}
