package bench.rocketmq;

import bench.Files;
import bench.Options;
import bench.Result;
import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import org.apache.rocketmq.store.DefaultMessageStore;

/** A real start of a store that has lost its consume queues and its index, until dispatch has caught up. */
final class Restart {
    private Restart() {
    }

    static Result run(Options options) throws Exception {
        File root = new File(options.text("scratch"), "restart");
        Files.remove(root);
        DefaultMessageStore store = Store.over(root, options);
        long start = System.nanoTime();
        if (!store.load()) {
            throw new IllegalStateException("the store does not load");
        }
        long loaded = System.nanoTime();
        // start() itself sleeps a second at a time until dispatch has caught up: watch from outside.
        Thread starter = new Thread(() -> {
            try {
                store.start();
            } catch (Exception failure) {
                throw new IllegalStateException(failure);
            }
        });
        starter.setDaemon(true);
        starter.start();
        Object reput = field(store, "reputMessageService");
        Method position = reput.getClass().getMethod("getReputFromOffset");
        position.setAccessible(true);
        while ((long) position.invoke(reput) < store.getMaxPhyOffset()) {
            Thread.sleep(1);
        }
        long caughtUp = System.nanoTime();
        Result result = new Result();
        long messages = Long.parseLong(options.text("messages"));
        result.add("restart", caughtUp - start, messages);
        result.add("dispatch", caughtUp - loaded, messages);
        result.answer("files", Files.checksum(new File(root, "index")));
        return result;
    }

    private static Object field(Object owner, String name) throws ReflectiveOperationException {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }
}
