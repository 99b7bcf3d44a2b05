package bench.rocketmq;

import bench.Files;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.DispatchRequest;

/** The mapped files of a commit log, decoded as the broker's dispatcher does (no body), or its recovery (with CRC). */
final class Log {
    interface Visitor {
        void visit(DispatchRequest request);
    }

    private final CommitLog commitLog;
    private final List<ByteBuffer> files = new ArrayList<>();
    private final boolean crc;

    Log(CommitLog commitLog, File directory) throws IOException {
        this(commitLog, directory, false);
    }

    Log(CommitLog commitLog, File directory, boolean crc) throws IOException {
        this.commitLog = commitLog;
        this.crc = crc;
        for (File file : Files.sorted(directory)) {
            files.add(Files.map(file));
        }
    }

    /** How many messages there are. A blank record ends a file, anything else that is no message ends the log. */
    long visit(Visitor visitor) {
        long messages = 0;
        for (ByteBuffer file : files) {
            ByteBuffer buffer = file.duplicate();
            DispatchRequest request = commitLog.checkMessageAndReturnSize(buffer, crc, crc);
            while (request.isSuccess() && request.getMsgSize() > 0) {
                visitor.visit(request);
                messages++;
                request = commitLog.checkMessageAndReturnSize(buffer, crc, crc);
            }
        }
        return messages;
    }
}
