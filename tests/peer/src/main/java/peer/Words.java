package peer;

import java.io.UnsupportedEncodingException;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;

/** Lines of words, each percent-encoded, with single blanks between them; a message as such a line. */
final class Words {
    private Words() {
    }

    static List<String> words(String line) throws UnsupportedEncodingException {
        List<String> words = new ArrayList<>();
        for (String word : line.split(" ", -1)) {
            words.add(URLDecoder.decode(word, "UTF-8"));
        }
        return words;
    }

    static String line(String... words) throws UnsupportedEncodingException {
        return line(Arrays.asList(words));
    }

    static String line(List<String> words) throws UnsupportedEncodingException {
        List<String> encoded = new ArrayList<>();
        for (String word : words) {
            encoded.add(URLEncoder.encode(word, "UTF-8"));
        }
        return String.join(" ", encoded);
    }

    static List<List<String>> one(Object... words) {
        List<String> row = new ArrayList<>();
        for (Object word : words) {
            row.add(String.valueOf(word));
        }
        List<List<String>> rows = new ArrayList<>();
        rows.add(row);
        return rows;
    }

    /** The fields in the order of {@code Received} in client.py, then name and value of each property. */
    static List<String> message(MessageExt message) {
        String offsetId = message instanceof MessageClientExt ? ((MessageClientExt) message).getOffsetMsgId() : "";
        List<String> row = one(message.getTopic(), message.getQueueId(), message.getQueueOffset(),
            message.getCommitLogOffset(), message.getStoreSize(), message.getSysFlag(), message.getFlag(),
            message.getBornTimestamp(), message.getStoreTimestamp(), message.getReconsumeTimes(),
            message.getPreparedTransactionOffset(), message.getBodyCRC(), message.getMsgId(), offsetId,
            Base64.getEncoder().encodeToString(message.getBody() == null ? new byte[0] : message.getBody())).get(0);
        for (Map.Entry<String, String> property : message.getProperties().entrySet()) {
            row.add(property.getKey());
            row.add(property.getValue());
        }
        return row;
    }

    static List<List<String>> messages(Iterable<MessageExt> messages) {
        List<List<String>> rows = new ArrayList<>();
        for (MessageExt message : messages) {
            rows.add(message(message));
        }
        return rows;
    }
}
