package bench.rocketmq;

import bench.Options;
import bench.Result;
import bench.Run;

/** RocketMQ's classes. */
public final class Main {
    private Main() {
    }

    public static void main(String[] argv) {
        Run.main(argv, Main::run);
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
