package bench.kafka;

import bench.Options;
import bench.Result;
import bench.Run;

/** Kafka's classes. */
public final class Main {
    private Main() {
    }

    public static void main(String[] argv) {
        Run.main(argv, Main::run);
    }

    private static Result run(String what, Options options) throws Exception {
        switch (what) {
            case "lookup":
                return Lookup.run(options);
            case "append":
                return Append.run(options);
            case "recover":
                return Recover.run(options);
            case "dump":
                return Dump.run(options);
            default:
                throw new IllegalArgumentException("no such contender: " + what);
        }
    }
}
