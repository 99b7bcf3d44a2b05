package bench;

import java.util.Arrays;

/**
 * One contender run of the real broker's classes: {@code <what> name=value ...} prints one JSON line.
 *
 * <p>Every measurement runs its rounds on one thread after warm-up rounds that are thrown away, and says in
 * {@code answer} what it computed, so that the other contenders of the same case can be held against it.
 */
public final class Run {
    /** The contenders of one broker, by name. */
    public interface Contenders {
        Result run(String what, Options options) throws Exception;
    }

    private Run() {
    }

    /** Runs what the first argument names, and ends the JVM. */
    public static void main(String[] argv, Contenders contenders) {
        int status = 0;
        try {
            Options options = new Options(Arrays.copyOfRange(argv, 1, argv.length));
            System.out.println(contenders.run(argv[0], options));
        } catch (Throwable failure) {
            failure.printStackTrace();
            status = 1;
        }
        System.out.flush();
        // A store's threads are no daemons: nothing but halt ends them.
        Runtime.getRuntime().halt(status);
    }
}
