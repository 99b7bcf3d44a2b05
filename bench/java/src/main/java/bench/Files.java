package bench;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.util.Arrays;
import java.util.zip.CRC32;

/** Directories of numbered files: listing, mapping, checksums, removal. */
public final class Files {
    private Files() {
    }

    public static File[] sorted(File directory) {
        File[] files = directory.listFiles();
        if (files == null) {
            return new File[0];
        }
        Arrays.sort(files);
        return files;
    }

    public static MappedByteBuffer map(File file) throws IOException {
        try (RandomAccessFile access = new RandomAccessFile(file, "r")) {
            return access.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, access.length());
        }
    }

    /** How many files there are, and the CRC-32 of all their bytes in the order of the names. */
    public static String checksum(File directory) throws IOException {
        CRC32 crc = new CRC32();
        File[] files = sorted(directory);
        for (File file : files) {
            crc.update(map(file));
        }
        return String.format("%d:%08x", files.length, crc.getValue());
    }

    public static void remove(File file) {
        for (File child : sorted(file)) {
            remove(child);
        }
        if (!file.delete() && file.exists()) {
            throw new IllegalStateException("cannot remove " + file);
        }
    }
}
