package peer;

import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.namesrv.NamesrvStartup;

/**
 * A name server and one client in one JVM, told what to do by lines on its standard input.
 *
 * <p>{@code Driver LOG NAMESRV_CONF NAMESRV_ADDRESS}. Each request is a line of words (see {@link Words}); its answer is
 * any number of lines that begin with {@code row}, then {@code ok}, or {@code error} and why. At the end of the input
 * the JVM ends.
 */
public final class Driver {
    private final BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    private final PrintStream answers;
    private final Sender sender;
    private final Reader reader;
    private final Admin admin;

    private Driver(PrintStream answers, String namesrv) throws Exception {
        this.answers = answers;
        sender = new Sender(namesrv);
        reader = new Reader(namesrv);
        admin = new Admin(namesrv);
    }

    public static void main(String[] argv) throws Exception {
        PrintStream answers = System.out;
        PrintStream log = new PrintStream(new FileOutputStream(argv[0], true), true, "UTF-8");
        System.setOut(log); // the tools talk
        System.setErr(log);
        try {
            NamesrvStartup.main0(new String[] {"-c", argv[1]});
            Driver driver = new Driver(answers, argv[2]);
            answers.println("ok");
            driver.serve();
        } catch (Throwable failure) {
            failure.printStackTrace();
            answers.println("error " + Words.line(failure.toString()));
        }
        answers.flush();
        Runtime.getRuntime().halt(0);
    }

    private void serve() throws Exception {
        String line = requests.readLine();
        while (line != null) {
            try {
                for (List<String> row : answer(Words.words(line))) {
                    answers.println("row " + Words.line(row));
                }
                answers.println("ok");
            } catch (Exception failure) {
                failure.printStackTrace();
                answers.println("error " + Words.line(failure.toString()));
            }
            answers.flush();
            line = requests.readLine();
        }
    }

    private List<List<String>> answer(List<String> request) throws Exception {
        List<String> rest = request.subList(1, request.size());
        switch (request.get(0)) {
            case "send":
                return sender.send(rest);
            case "batch":
                return sender.batch(further(Integer.parseInt(rest.get(0))));
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

    private List<List<String>> further(int count) throws Exception {
        List<List<String>> lines = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            lines.add(Words.words(requests.readLine()));
        }
        return lines;
    }
}
