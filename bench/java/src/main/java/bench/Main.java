package bench;

import java.util.Arrays;

/**
 * One contender run of the real broker's classes: {@code Main <what> name=value ...} prints one JSON line.
 *
 * <p>Every measurement runs its rounds on one thread after warm-up rounds that are thrown away, and says in
 * {@code answer} what it computed, so that the other contenders of the same case can be held against it.
 */
public final class Main {
    private Main() {
    }

    public static void main(String[] argv) {
        int status = 0;
        try {
            Options options = new Options(Arrays.copyOfRange(argv, 1, argv.length));
            System.out.println(run(argv[0], options));
        } catch (Throwable failure) {
            failure.printStackTrace();
            status = 1;
        }
        System.out.flush();
        // The store's threads are no daemons: nothing but halt ends them.
        Runtime.getRuntime().halt(status);
    }

    private static Result run(String what, Options options) throws Exception {
        switch (what) {
            case "put":
                return PutKey.run(options);
            case "select":
                return SelectPhyOffset.run(options);
            case "decode":
                return Decode.run(options);
            case "build":
                return BuildIndex.run(options);
            case "restart":
                return Restart.run(options);
            case "append":
                return PutMessage.run(options);
            case "get":
                return GetMessage.run(options);
            default:
                throw new IllegalArgumentException("no such contender: " + what);
        }
    }
}
