package bench;

import java.io.IOException;

/** Has another process touch memory just before a timed round, as every contender does (see bench/README.md). */
public final class Memory {
    private final String command;

    public Memory(Options options) {
        command = options.text("warm", "");
    }

    public void warm() throws IOException, InterruptedException {
        if (!command.isEmpty() && new ProcessBuilder(command.split(" ")).inheritIO().start().waitFor() != 0) {
            throw new IOException("failed: " + command);
        }
    }
}
