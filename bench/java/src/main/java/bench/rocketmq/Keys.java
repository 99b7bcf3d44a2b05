package bench.rocketmq;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;

/** Keys of a fixed width from one file without separators, made into strings a block at a time. */
final class Keys implements AutoCloseable {
    static final int WIDTH = 32;

    private final FileChannel channel;
    final int count;

    Keys(String path) throws IOException {
        channel = FileChannel.open(Paths.get(path), StandardOpenOption.READ);
        count = (int) (channel.size() / WIDTH);
    }

    String[] block(int from, int to) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate((to - from) * WIDTH);
        long at = (long) from * WIDTH;
        while (bytes.hasRemaining()) {
            at += channel.read(bytes, at);
        }
        String[] keys = new String[to - from];
        for (int i = 0; i < keys.length; i++) {
            keys[i] = new String(bytes.array(), i * WIDTH, WIDTH, StandardCharsets.ISO_8859_1);
        }
        return keys;
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
