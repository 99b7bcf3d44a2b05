package bench.kafka;

import bench.Files;
import java.io.File;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.LongBuffer;

/** 64-bit numbers, little-endian, from a file. */
final class Numbers {
    private Numbers() {
    }

    static long[] read(String path) throws IOException {
        LongBuffer buffer = Files.map(new File(path)).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
        long[] numbers = new long[buffer.remaining()];
        buffer.get(numbers);
        return numbers;
    }
}
