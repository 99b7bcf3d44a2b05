package peer;

import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A partner that is told what to do by lines on its standard input.
 *
 * <p>Each request is a line of words (see {@link Words}), with more such lines behind it where it says how many; its
 * answer is any number of lines that begin with {@code row}, then {@code ok}, or {@code error} and why. The first answer
 * says that it is there. At the end of the input the JVM ends.
 */
public final class Conversation {
    /** Answers a request; the lines that belong to it are read from the conversation. */
    public interface Partner {
        List<List<String>> answer(List<String> request, Conversation more) throws Exception;
    }

    /** Makes the partner. */
    public interface Start {
        Partner start() throws Exception;
    }

    private final BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    private final PrintStream answers = System.out;

    private Conversation() {
    }

    /** Until the end; whatever is printed meanwhile goes to the log. */
    public static void hold(String log, Start start) throws IOException {
        Conversation held = new Conversation();
        PrintStream printed = new PrintStream(new FileOutputStream(log, true), true, "UTF-8");
        System.setOut(printed);
        System.setErr(printed);
        try {
            Partner partner = start.start();
            held.answers.println("ok");
            held.answers.flush();
            held.serve(partner);
        } catch (Throwable failure) {
            held.say(failure);
        }
        held.answers.flush();
        Runtime.getRuntime().halt(0);
    }

    /** So many lines that belong to a request. */
    public List<List<String>> further(int count) throws IOException {
        List<List<String>> lines = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            lines.add(Words.words(requests.readLine()));
        }
        return lines;
    }

    private void serve(Partner partner) throws IOException {
        String line = requests.readLine();
        while (line != null) {
            try {
                for (List<String> row : partner.answer(Words.words(line), this)) {
                    answers.println("row " + Words.line(row));
                }
                answers.println("ok");
            } catch (Exception failure) {
                say(failure);
            }
            answers.flush();
            line = requests.readLine();
        }
    }

    private void say(Throwable failure) throws IOException {
        failure.printStackTrace();
        answers.println("error " + Words.line(failure.toString()));
    }
}
