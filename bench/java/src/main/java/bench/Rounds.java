package bench;

/**
 * Warm-up rounds, then timed ones. Each kind goes on until it has had its number of rounds and {@code least} seconds,
 * so that small work is compiled and repeated as well as large work.
 */
public final class Rounds {
    private static final int MOST = 30;

    private final int warmup;
    private final int timed;
    private final long least;
    private int done = 0;
    private boolean warm;
    private long began = System.nanoTime();

    public Rounds(Options options) {
        warmup = options.integer("warmup");
        timed = options.integer("rounds");
        least = (long) (Double.parseDouble(options.text("least")) * 1e9);
        warm = warmup == 0;
    }

    /** Begins the next round, if there is one. */
    public boolean next() {
        long now = System.nanoTime();
        if (!warm && done >= warmup && now - began >= least) {
            warm = true;
            done = 0;
            began = now;
        }
        if (warm && done >= timed && (now - began >= least || done >= MOST)) {
            return false;
        }
        done++;
        return true;
    }

    /** Whether the current round counts. */
    public boolean isTimed() {
        return warm;
    }
}
