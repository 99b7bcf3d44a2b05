package bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Seconds of each round of each measure, and the answers, as one line of JSON. */
public final class Result {
    private final Map<String, List<Double>> seconds = new LinkedHashMap<>();
    private final Map<String, Long> units = new LinkedHashMap<>();
    private final Map<String, String> answers = new LinkedHashMap<>();

    /** One round of {@code measure} took {@code nanos} for {@code unitCount} units. */
    public void add(String measure, long nanos, long unitCount) {
        seconds.computeIfAbsent(measure, name -> new ArrayList<>()).add(nanos / 1e9);
        units.put(measure, unitCount);
    }

    public void answer(String name, long value) {
        answers.put(name, Long.toString(value));
    }

    public void answer(String name, String value) {
        answers.put(name, '"' + value + '"');
    }

    @Override
    public String toString() {
        List<String> measures = new ArrayList<>();
        seconds.forEach((name, rounds) -> {
            List<String> numbers = new ArrayList<>();
            rounds.forEach(round -> numbers.add(String.format(Locale.ROOT, "%.9f", round)));
            measures.add(String.format(Locale.ROOT, "\"%s\": {\"units\": %d, \"seconds\": [%s]}", name,
                units.get(name), String.join(", ", numbers)));
        });
        List<String> facts = new ArrayList<>();
        answers.forEach((name, value) -> facts.add("\"" + name + "\": " + value));
        return "{\"measures\": {" + String.join(", ", measures) + "}, \"answer\": {" + String.join(", ", facts)
            + "}, \"java\": \"" + System.getProperty("java.vm.name") + " " + System.getProperty("java.runtime.version")
            + "\"}";
    }
}
