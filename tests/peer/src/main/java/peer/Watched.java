package peer;

import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;

/** Runs another class's {@code main}, and halts the JVM when whoever started it has gone, however that ended. */
public final class Watched {
    private Watched() {
    }

    public static void main(String[] argv) throws Throwable {
        Thread watcher = new Thread(Watched::haltAtEndOfInput, "end-of-input");
        watcher.setDaemon(true);
        watcher.start();
        String[] rest = Arrays.copyOfRange(argv, 1, argv.length);
        try {
            Class.forName(argv[0]).getMethod("main", String[].class).invoke(null, (Object) rest);
        } catch (InvocationTargetException failure) {
            throw failure.getCause();
        }
    }

    private static void haltAtEndOfInput() {
        try {
            while (System.in.read() >= 0) {
                // Nothing is ever said: only the end of the pipe matters.
            }
        } catch (java.io.IOException broken) {
            broken.printStackTrace();
        }
        Runtime.getRuntime().halt(1);
    }
}
