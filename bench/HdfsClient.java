// The rival: Hadoop's own client in a JVM that stays warm. On each line of its input a verb and two paths, tabs between;
// it answers each with `took` and seconds.

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

public class HdfsClient {
    static final int BUFFER = 1 << 20;
    static final int THREADS = 32;

    public static void main(String[] arguments) throws Exception {
        FileSystem files = FileSystem.get(new Configuration());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            long begun = System.nanoTime();
            switch (words[0]) {
                case "get" -> get(files, new Path(words[1]), words[2]);
                case "getall" -> getAll(files, new Path(words[1]), words[2]);
                case "put" -> put(files, words[2], new Path(words[1]));
                case "list" -> files.listStatus(new Path(words[1]));
                default -> throw new IllegalArgumentException(line);
            }
            System.out.println("took " + (System.nanoTime() - begun) / 1e9);
            System.out.flush();
        }
    }

    static void get(FileSystem files, Path path, String target) throws Exception {
        try (InputStream in = files.open(path); OutputStream out = new FileOutputStream(target)) {
            copy(in, out);
        }
    }

    static void put(FileSystem files, String source, Path path) throws Exception {
        try (InputStream in = new FileInputStream(source); OutputStream out = files.create(path, true)) {
            copy(in, out);
        }
    }

    static void getAll(FileSystem files, Path directory, String target) throws Exception {
        Files.createDirectories(Paths.get(target));
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        List<Future<?>> running = new ArrayList<>();
        for (FileStatus status : files.listStatus(directory)) {
            running.add(pool.submit(() -> {
                get(files, status.getPath(), target + "/" + status.getPath().getName());
                return null;
            }));
        }
        for (Future<?> each : running) {
            each.get();
        }
        pool.shutdown();
    }

    static void copy(InputStream in, OutputStream out) throws Exception {
        byte[] buffer = new byte[BUFFER];
        for (int length = in.read(buffer); length > 0; length = in.read(buffer)) {
            out.write(buffer, 0, length);
        }
    }
}
