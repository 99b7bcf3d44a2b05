package bench.kafka;

import bench.Options;
import bench.Result;
import bench.Rounds;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;

/**
 * {@code DumpLogSegments --verify-index-only} of both indexes of a segment: two processes, as an operator starts them,
 * because each kind of file is a run of its own. The second one's seconds are added to the first one's.
 */
final class Dump {
    private Dump() {
    }

    static Result run(Options options) throws Exception {
        String segment = options.text("segment");
        Result result = new Result();
        Rounds rounds = new Rounds(options);
        while (rounds.next()) {
            long offset = nanos(segment + ".index", options);
            long time = nanos(segment + ".timeindex", options);
            if (rounds.isTimed()) {
                result.add("offset", offset, 1);
                result.add("time", time, 1);
                result.add("both", offset + time, 1);
            }
        }
        result.answer("findings", 0);
        return result;
    }

    private static long nanos(String file, Options options) throws IOException, InterruptedException {
        Path machine = Path.of(System.getProperty("java.home"), "bin", "java");
        File said = new File(options.text("scratch"), "said");
        // The heap and the collector of the script that comes with the tool.
        ProcessBuilder builder = new ProcessBuilder(machine.toString(), "-Xmx256M", "-server", "-XX:+UseG1GC",
            "-Djava.awt.headless=true", "-cp", System.getProperty("java.class.path"), "kafka.tools.DumpLogSegments",
            "--verify-index-only", "--files", file);
        builder.redirectErrorStream(true).redirectOutput(said);
        long start = System.nanoTime();
        int status = builder.start().waitFor();
        long nanos = System.nanoTime() - start;
        String text = java.nio.file.Files.readString(said.toPath());
        if (status != 0 || text.contains("Mismatch") || text.contains("mismatch") || text.contains("not found")) {
            throw new IllegalStateException(status + ": " + text);
        }
        return nanos;
    }
}
