package peer.thresholds;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collections;
import java.util.Properties;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** Asks the classes of one release one question. An answer is a line that begins with {@code answer: }. */
public final class Asked {
    private Asked() {
    }

    public static void main(String[] argv) {
        try {
            ask(argv[0], Arrays.copyOfRange(argv, 1, argv.length));
        } catch (Throwable failure) {
            failure.printStackTrace();
            Throwable cause = failure instanceof InvocationTargetException ? failure.getCause() : failure;
            answer("threw " + cause.getClass().getSimpleName());
        }
        end();
    }

    static void answer(String line) {
        System.out.println("answer: " + line);
    }

    private static void ask(String what, String[] rest) throws Exception {
        switch (what) {
            case "store":
                new Store(rest).start();
                break;
            case "class":
                answer(rest[0] + (exists(rest[0]) ? " is there" : " is not there"));
                break;
            case "decode":
                decode(rest[0], rest[1]);
                break;
            case "setting":
                setting(rest[0], rest[1], rest[2]);
                break;
            case "frames":
                frames(Integer.parseInt(rest[0]));
                break;
            case "properties":
                String text = MessageDecoder.messageProperties2String(Collections.singletonMap("KEYS", "k"));
                answer(text.length() + " characters");
                break;
            default:
                throw new IllegalArgumentException(what);
        }
    }

    private static boolean exists(String name) {
        try {
            return Class.forName(name, false, Asked.class.getClassLoader()) != null;
        } catch (ClassNotFoundException absent) {
            return false;
        }
    }

    /** A manager of a configuration takes this text for a file of its own; what it throws makes a broker load the .bak. */
    private static void decode(String name, String text) throws Exception {
        Constructor<?> chosen = null;
        for (Constructor<?> one : Class.forName(name).getDeclaredConstructors()) {
            if (chosen == null || one.getParameterCount() < chosen.getParameterCount()) {
                chosen = one;
            }
        }
        chosen.setAccessible(true);
        Object manager = chosen.newInstance(new Object[chosen.getParameterCount()]);
        manager.getClass().getMethod("decode", String.class).invoke(manager, text);
        answer("taken");
    }

    private static void setting(String key, String value, String getter) throws Exception {
        Properties properties = new Properties();
        properties.setProperty(key, value);
        MessageStoreConfig config = new MessageStoreConfig();
        MixAll.properties2Object(properties, config);
        try {
            Method asked = MessageStoreConfig.class.getMethod(getter);
            answer("[" + asked.invoke(config) + "]");
        } catch (NoSuchMethodException absent) {
            answer("no " + getter);
        }
    }

    /** The longest frame that the encoder of 4.9 takes, where messages may have bodies of so many bytes. */
    private static void frames(int maxMessageSize) throws Exception {
        Class<?> type = Class.forName("org.apache.rocketmq.store.CommitLog$MessageExtEncoder");
        Constructor<?> constructor = type.getDeclaredConstructor(int.class);
        constructor.setAccessible(true);
        Object encoder = constructor.newInstance(maxMessageSize);
        try {
            Field limit = type.getDeclaredField("maxMessageSize");
            limit.setAccessible(true);
            answer(limit.getInt(encoder) + " bytes");
        } catch (NoSuchFieldException absent) {
            answer("no limit");
        }
    }

    static void end() {
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
