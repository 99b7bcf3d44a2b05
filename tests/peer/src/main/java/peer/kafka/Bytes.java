package peer.kafka;

import java.util.Base64;

/** Keys and values, which may be absent, as words. */
final class Bytes {
    private static final String NONE = "-";

    private Bytes() {
    }

    static String word(byte[] bytes) {
        return bytes == null ? NONE : Base64.getEncoder().encodeToString(bytes);
    }

    static byte[] of(String word) {
        return word.equals(NONE) ? null : Base64.getDecoder().decode(word);
    }
}
