// The rival: Hadoop's own reader in a JVM that stays warm, values as text and a line end, as XLearning feeds them. A
// file's path on each line of its input; it answers each with `took` and seconds of CPU, JVM's own threads included.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.util.ReflectionUtils;

public class SequenceFiles {
    public static void main(String[] arguments) throws Exception {
        Configuration conf = new Configuration();
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            long begun = system.getProcessCpuTime();
            read(conf, new Path(line));
            System.out.println("took " + (system.getProcessCpuTime() - begun) / 1e9);
            System.out.flush();
        }
    }

    static void read(Configuration conf, Path path) throws Exception {
        OutputStream out = OutputStream.nullOutputStream();
        try (SequenceFile.Reader reader = new SequenceFile.Reader(conf, SequenceFile.Reader.file(path))) {
            Writable key = (Writable) ReflectionUtils.newInstance(reader.getKeyClass(), conf);
            Writable value = (Writable) ReflectionUtils.newInstance(reader.getValueClass(), conf);
            while (reader.next(key, value)) out.write((value.toString() + "\n").getBytes(StandardCharsets.UTF_8));
        }
    }
}
