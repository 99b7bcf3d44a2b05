package bench;

import java.util.HashMap;
import java.util.Map;

/** The {@code name=value} arguments of a run. */
public final class Options {
    private final Map<String, String> values = new HashMap<>();

    public Options(String[] arguments) {
        for (String argument : arguments) {
            int equals = argument.indexOf('=');
            if (equals < 1) {
                throw new IllegalArgumentException("expected name=value, got " + argument);
            }
            values.put(argument.substring(0, equals), argument.substring(equals + 1));
        }
    }

    public String text(String name) {
        String value = values.get(name);
        if (value == null) {
            throw new IllegalArgumentException("missing: " + name + "=");
        }
        return value;
    }

    public String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    public int integer(String name) {
        return Integer.parseInt(text(name));
    }
}
