package peer;

import java.io.UnsupportedEncodingException;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Lines of words, each percent-encoded, with single blanks between them. */
public final class Words {
    private Words() {
    }

    public static List<String> words(String line) throws UnsupportedEncodingException {
        List<String> words = new ArrayList<>();
        for (String word : line.split(" ", -1)) {
            words.add(URLDecoder.decode(word, "UTF-8"));
        }
        return words;
    }

    public static String line(String... words) throws UnsupportedEncodingException {
        return line(Arrays.asList(words));
    }

    public static String line(List<String> words) throws UnsupportedEncodingException {
        List<String> encoded = new ArrayList<>();
        for (String word : words) {
            encoded.add(URLEncoder.encode(word, "UTF-8"));
        }
        return String.join(" ", encoded);
    }

    /** One row, to be added to. */
    public static List<String> row(Object... words) {
        List<String> row = new ArrayList<>();
        for (Object word : words) {
            row.add(String.valueOf(word));
        }
        return row;
    }

    /** An answer of one row. */
    public static List<List<String>> one(Object... words) {
        List<List<String>> rows = new ArrayList<>();
        rows.add(row(words));
        return rows;
    }
}
