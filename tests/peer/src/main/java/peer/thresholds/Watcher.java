package peer.thresholds;

import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Map;
import org.apache.rocketmq.store.DefaultMessageStore;

/** Sees what a store does by its threads, however slow the machine is. A start that waits for what never comes is ended. */
final class Watcher implements Runnable {
    private static final int ROUNDS = 10;
    private final DefaultMessageStore store;
    private final Thread starting;

    Watcher(DefaultMessageStore store, Thread starting) {
        this.store = store;
        this.starting = starting;
    }

    @Override
    public void run() {
        try {
            do {
                awaitDispatch(store);
            } while (store.dispatchBehindBytes() <= 0 || !sleepsInStart());
        } catch (InterruptedException started) {
            return;
        }
        Asked.answer("does not end");
        Asked.end();
    }

    /** Until the dispatcher worked and rested some times without getting on: it has nothing more to do. */
    static void awaitDispatch(DefaultMessageStore store) throws InterruptedException {
        long behind = -1;
        long used = 0;
        for (int rounds = 0; rounds < ROUNDS; Thread.sleep(20)) {
            for (Map.Entry<Thread, StackTraceElement[]> one : Thread.getAllStackTraces().entrySet()) {
                if (!has(one.getValue(), "ReputMessageService", "run")) {
                    continue;
                }
                long now = ManagementFactory.getThreadMXBean().getThreadCpuTime(one.getKey().getId());
                if (behind != store.dispatchBehindBytes()) {
                    behind = store.dispatchBehindBytes();
                    rounds = 0;
                } else if (now > used && !has(one.getValue(), "ReputMessageService", "doReput")) {
                    rounds++;
                } else {
                    continue;
                }
                used = now;
            }
        }
    }

    /** The store itself, and nothing that it starts. */
    private boolean sleepsInStart() {
        StackTraceElement[] stack = starting.getStackTrace();
        return has(stack, "Thread", "sleep") && Arrays.stream(stack)
            .filter(one -> !one.getClassName().startsWith("java.")).findFirst()
            .filter(one -> one.getClassName().endsWith("DefaultMessageStore")).isPresent();
    }

    private static boolean has(StackTraceElement[] stack, String type, String method) {
        return Arrays.stream(stack)
            .anyMatch(one -> one.getClassName().endsWith(type) && one.getMethodName().equals(method));
    }
}
