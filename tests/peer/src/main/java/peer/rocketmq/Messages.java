package peer.rocketmq;

import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import peer.Words;

/** Messages as rows: the fields in the order of {@code Received} in client.py, then name and value of each property. */
final class Messages {
    private Messages() {
    }

    static List<List<String>> rows(Iterable<MessageExt> messages) {
        List<List<String>> rows = new ArrayList<>();
        for (MessageExt message : messages) {
            rows.add(row(message));
        }
        return rows;
    }

    private static List<String> row(MessageExt message) {
        String offsetId = message instanceof MessageClientExt ? ((MessageClientExt) message).getOffsetMsgId() : "";
        List<String> row = Words.row(message.getTopic(), message.getQueueId(), message.getQueueOffset(),
            message.getCommitLogOffset(), message.getStoreSize(), message.getSysFlag(), message.getFlag(),
            message.getBornTimestamp(), message.getStoreTimestamp(), message.getReconsumeTimes(),
            message.getPreparedTransactionOffset(), message.getBodyCRC(), message.getMsgId(), offsetId,
            Base64.getEncoder().encodeToString(message.getBody() == null ? new byte[0] : message.getBody()));
        for (Map.Entry<String, String> property : message.getProperties().entrySet()) {
            row.add(property.getKey());
            row.add(property.getValue());
        }
        return row;
    }
}
