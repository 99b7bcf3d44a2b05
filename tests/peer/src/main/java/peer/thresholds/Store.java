package peer.thresholds;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.AppendMessageResult;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.MessageArrivingListener;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * A message store without a broker. Arguments: settings as name=value, then what to do after the start:
 * put:TOPIC:BYTES[:NAME:VALUE], get:TOPIC:OFFSET, timer, stop.
 */
final class Store {
    private final String[] todo;
    private final MessageStoreConfig config = new MessageStoreConfig();
    private final DefaultMessageStore store;

    Store(String[] argv) throws Exception {
        Properties properties = new Properties();
        for (String one : argv) {
            int at = one.indexOf('=');
            if (at > 0) {
                properties.setProperty(one.substring(0, at), one.substring(at + 1));
            }
        }
        todo = Arrays.stream(argv).filter(one -> one.indexOf('=') < 0).toArray(String[]::new);
        BrokerConfig broker = new BrokerConfig();
        MixAll.properties2Object(properties, config);
        MixAll.properties2Object(properties, broker);
        config.setHaListenPort(0);
        Object listener = Proxy.newProxyInstance(
            Store.class.getClassLoader(), new Class<?>[] {MessageArrivingListener.class}, (self, method, given) -> null);
        Object statistics = make(BrokerStatsManager.class, broker);
        store = (DefaultMessageStore) make(DefaultMessageStore.class, config, statistics, listener, broker);
    }

    void start() throws Exception {
        boolean loaded = store.load();
        Asked.answer("load " + loaded);
        if (!loaded) {
            return;
        }
        Asked.answer("log " + store.getMinPhyOffset() + " " + store.getMaxPhyOffset());
        Thread watcher = new Thread(new Watcher(store, Thread.currentThread()));
        watcher.start();
        store.start();
        watcher.interrupt();
        Asked.answer("started");
        for (String one : todo) {
            act(one.split(":"));
        }
        Watcher.awaitDispatch(store);
        queues();
        if (Arrays.asList(todo).contains("stop")) {
            store.shutdown();
        }
    }

    /** By its longest constructor; what is not given is a name, an empty table or false. */
    private static Object make(Class<?> type, Object... given) throws Exception {
        Constructor<?> chosen = type.getConstructors()[0];
        for (Constructor<?> one : type.getConstructors()) {
            chosen = one.getParameterCount() > chosen.getParameterCount() ? one : chosen;
        }
        Class<?>[] types = chosen.getParameterTypes();
        Object[] arguments = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            Class<?> wanted = types[i];
            arguments[i] = Arrays.stream(given).filter(wanted::isInstance).findFirst().orElseGet(() -> plain(wanted));
        }
        return chosen.newInstance(arguments);
    }

    private static Object plain(Class<?> type) {
        return type == boolean.class ? (Object) false : type == String.class ? "b" : new ConcurrentHashMap<Object, Object>();
    }

    private void act(String[] words) throws Exception {
        if (words[0].equals("put")) {
            put(words);
        } else if (words[0].equals("get")) {
            GetMessageResult got = store.getMessage("g", words[1], 0, Long.parseLong(words[2]), 1, null);
            Asked.answer("get " + got.getStatus() + " next " + got.getNextBeginOffset());
        } else if (words[0].equals("timer")) {
            timer();
        }
    }

    private void put(String[] words) throws Exception {
        Class<?> type = innerMessage();
        MessageExt message = (MessageExt) type.getConstructor().newInstance();
        message.setTopic(words[1]);
        MessageAccessor.setProperties(message, new HashMap<>());
        message.setBody(new byte[Integer.parseInt(words[2])]);
        for (int i = 3; i + 1 < words.length; i += 2) {
            MessageAccessor.putProperty(message, words[i], words[i + 1]);
        }
        message.setBornHost(new InetSocketAddress("127.0.0.1", 1));
        message.setStoreHost(new InetSocketAddress("127.0.0.1", 2));
        message.setBornTimestamp(System.currentTimeMillis());
        String properties = MessageDecoder.messageProperties2String(message.getProperties());
        type.getMethod("setPropertiesString", String.class).invoke(message, properties);
        Object result = DefaultMessageStore.class.getMethod("putMessage", type).invoke(store, message);
        Object status = PutMessageResult.class.getMethod("getPutMessageStatus").invoke(result);
        AppendMessageResult put = ((PutMessageResult) result).getAppendMessageResult();
        Asked.answer("put " + status + (put == null ? "" : " offset " + put.getLogicsOffset()));
    }

    /** Whether the timer loads its files, and where in the queue of timed messages it goes on by its checkpoint. */
    private void timer() throws Exception {
        Watcher.awaitDispatch(store);
        String directory = config.getStorePathRootDir() + "/config/";
        Object checkpoint = ofTimer("TimerCheckpoint").getConstructor(String.class).newInstance(directory + "timercheck");
        Object metrics = ofTimer("TimerMetrics").getConstructor(String.class).newInstance(directory + "timermetrics");
        Class<?> type = ofTimer("TimerMessageStore");
        Object timer = type.getConstructors()[0].newInstance(store, config, checkpoint, metrics, null);
        Asked.answer("timers load " + type.getMethod("load").invoke(timer));
        Asked.answer("timer at " + type.getMethod("getQueueOffset").invoke(timer));
    }

    private static Class<?> ofTimer(String name) throws ClassNotFoundException {
        return Class.forName("org.apache.rocketmq.store.timer." + name);
    }

    private static Class<?> innerMessage() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.rocketmq.store.MessageExtBrokerInner");
        } catch (ClassNotFoundException moved) {
            return Class.forName("org.apache.rocketmq.common.message.MessageExtBrokerInner");
        }
    }

    private void queues() throws Exception {
        File[] topics = new File(config.getStorePathRootDir(), "consumequeue").listFiles(File::isDirectory);
        if (topics == null) {
            return;
        }
        Arrays.sort(topics);
        for (File topic : topics) {
            long min = store.getMinOffsetInQueue(topic.getName(), 0);
            long max = store.getMaxOffsetInQueue(topic.getName(), 0);
            Asked.answer("queue " + topic.getName() + " 0 " + min + " " + max);
        }
    }
}
