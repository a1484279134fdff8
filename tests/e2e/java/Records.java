// Writes record files with Hadoop's, Avro's and ORC's own classes, and what they read of them; reads files that howdah
// wrote. `java -cp ... Records.java DIRECTORY`: files go to DIRECTORY/theirs, `name` with the expected lines in
// `name.expected`; for splits of several sizes `name.splits` has a line "size count count ..." each. DIRECTORY/ours is
// read, the lines of each file go to DIRECTORY/read.

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.avro.Schema;
import org.apache.avro.file.*;
import org.apache.avro.generic.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.*;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.compress.*;
import org.apache.hadoop.mapred.*;
import org.apache.hadoop.util.ReflectionUtils;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.example.GroupReadSupport;

public class Records {
    static final Configuration conf = new Configuration();
    static final Random random = new Random(7);
    static Path theirs;

    public static void main(String[] arguments) throws Exception {
        conf.set("fs.defaultFS", "file:///");
        conf.setInt("io.seqfile.compress.blocksize", 20000);
        File directory = new File(arguments[0]);
        new File(directory, "theirs").mkdirs();
        new File(directory, "read").mkdirs();
        theirs = new Path(new File(directory, "theirs").toURI());
        for (File file : new File(directory, "ours").listFiles()) read(file, new File(directory, "read/" + file.getName()));
        sequenceFiles();
        textFiles();
        avroFiles();
        orcFiles();
    }

    // SequenceFiles

    static CompressionCodec codec(String name) {
        String type = name.equals("none") ? "DefaultCodec" : name;
        try {
            return (CompressionCodec) ReflectionUtils.newInstance(
                    Class.forName("org.apache.hadoop.io.compress." + type), conf);
        } catch (ClassNotFoundException error) {
            throw new RuntimeException(error);
        }
    }

    static void sequenceFiles() throws Exception {
        for (CompressionType type : CompressionType.values())
            for (String name : List.of("DefaultCodec", "BZip2Codec", "SnappyCodec", "Lz4Codec")) {
                if (type == CompressionType.NONE && !name.equals("DefaultCodec")) continue;
                int count = name.equals("BZip2Codec") ? 200 : 1000;
                sequenceFile("seq-" + type.name().toLowerCase() + "-" + name, type, name, count,
                        number -> new LongWritable(number), number -> new Text(words(number)));
            }
        Object[][] kinds = {
            {"bytes", make(n -> new Text("k" + n)), make(n -> new BytesWritable(bytes(n)))},
            {"double", make(n -> new IntWritable(n - 100)), make(n -> new DoubleWritable(random.nextGaussian()))},
            {"float", make(n -> NullWritable.get()), make(n -> new FloatWritable(random.nextFloat() * 1e9f))},
            {"null", make(n -> new Text(words(n))), make(n -> NullWritable.get())},
            {"vlong", make(n -> new VIntWritable(n * 77 - 9000)), make(n -> new VLongWritable(random.nextLong() >> n % 64))},
            {"boolean", make(n -> new ShortWritable((short) n)), make(n -> new BooleanWritable(n % 3 == 0))},
            {"map", make(n -> new ByteWritable((byte) n)), make(n -> map(n))},
        };
        for (Object[] kind : kinds)
            for (CompressionType type : CompressionType.values())
                sequenceFile("kind-" + kind[0] + "-" + type.name().toLowerCase(), type, "DefaultCodec", 300,
                        (Make) kind[1], (Make) kind[2]);
        sequenceFile("seq-empty", CompressionType.BLOCK, "DefaultCodec", 0, n -> new Text(), n -> new Text());
    }

    interface Make { Writable of(int number); }

    static Make make(Make it) { return it; }

    static MapWritable map(int number) {
        MapWritable map = new MapWritable();
        map.put(new Text("n"), new IntWritable(number));
        return map;
    }

    static byte[] bytes(int number) {
        byte[] data = new byte[number * 7 % 400];
        random.nextBytes(data);
        return data;
    }

    static final int[] SIZES = {0, 1, 20, 126, 127, 128, 129, 255, 256, 300};

    static String words(int number) {
        int size = number % 501 == 500 ? 70000 : SIZES[number % SIZES.length];
        StringBuilder text = new StringBuilder();
        while (text.length() < size) text.append((char) ('a' + random.nextInt(26)));
        return number % 50 == 7 ? text + "\u00e9\u4e2d" : text.toString();
    }

    static void sequenceFile(String name, CompressionType type, String codec, int count, Make key, Make value)
            throws Exception {
        Path path = new Path(theirs, name);
        try (PrintStream expected = lines(name + ".expected");
                SequenceFile.Writer writer = SequenceFile.createWriter(conf, SequenceFile.Writer.file(path),
                        SequenceFile.Writer.keyClass(key.of(1).getClass()),
                        SequenceFile.Writer.valueClass(value.of(1).getClass()),
                        SequenceFile.Writer.compression(type, codec(codec)),
                        SequenceFile.Writer.syncInterval(3000))) {
            for (int number = 0; number < count; number++) {
                Writable one = key.of(number), other = value.of(number);
                writer.append(one, other);
                expected.println(shown(one) + "\t" + shown(other));
            }
        }
        JobConf job = new JobConf(conf);
        splits(name, List.of(3000, 20000), new SequenceFileInputFormat<Writable, Writable>(), job);
    }

    static String shown(Writable value) throws IOException {
        if (value instanceof NullWritable) return "";
        if (!(value instanceof BytesWritable || value instanceof MapWritable)) return value.toString();
        if (value instanceof BytesWritable) return Base64.getEncoder().encodeToString(((BytesWritable) value).copyBytes());
        DataOutputBuffer stored = new DataOutputBuffer();
        value.write(stored);
        return Base64.getEncoder().encodeToString(Arrays.copyOf(stored.getData(), stored.getLength()));
    }

    // Text

    static void textFiles() throws Exception {
        byte[] text = text(3000);
        for (String name : List.of("plain.txt", "text.gz", "members.gz", "text.bz2", "streams.bz2", "text.snappy",
                "text.lz4", "text.deflate")) {
            CompressionCodec codec = new CompressionCodecFactory(conf).getCodec(new Path(name));
            try (OutputStream out = new FileOutputStream(new File(theirs.toUri().getPath(), name))) {
                int parts = name.equals("members.gz") || name.equals("streams.bz2") ? 3 : 1;
                for (int part = 0; part < parts; part++) {
                    if (codec == null) { out.write(text); continue; }
                    ByteArrayOutputStream packed = new ByteArrayOutputStream();
                    try (OutputStream stream = codec.createOutputStream(packed)) { stream.write(text); }
                    out.write(packed.toByteArray());
                }
            }
            JobConf job = new JobConf(conf);
            TextInputFormat format = new TextInputFormat();
            format.configure(job);
            splits(name, codec == null ? List.of(1013, 50000) : List.of(70000, 200000), format, job);
        }
        JobConf job = new JobConf(conf);
        job.setInt("mapreduce.input.lineinputformat.linespermap", 37);
        counted("plain.txt", job);
    }

    static byte[] text(int lines) {
        StringBuilder text = new StringBuilder();
        String[] ends = {"\n", "\n", "\n", "\r\n", "\r"};
        for (int number = 0; number < lines; number++)
            text.append(number).append(' ').append(number % 1000 == 999 ? words(500) : words(number % 5))
                    .append(ends[random.nextInt(ends.length)]);
        return text.append("the end").toString().getBytes(StandardCharsets.UTF_8);
    }

    static void counted(String name, JobConf job) throws Exception {
        FileInputFormat.setInputPaths(job, new Path(theirs, name));
        org.apache.hadoop.mapred.lib.NLineInputFormat format = new org.apache.hadoop.mapred.lib.NLineInputFormat();
        format.configure(job);
        try (PrintStream out = lines(name + ".counted")) {
            for (InputSplit split : format.getSplits(job, 1)) out.println(count(format, split, job, null));
        }
    }

    static <K, V> void splits(String name, List<Integer> sizes, FileInputFormat<K, V> format, JobConf job)
            throws Exception {
        Path path = new Path(theirs, name);
        FileStatus status = path.getFileSystem(conf).getFileStatus(path);
        boolean whole = new CompressionCodecFactory(conf).getCodec(path) != null && !name.endsWith(".bz2");
        try (PrintStream out = lines(name + ".splits")) {
            boolean first = format instanceof TextInputFormat;
            for (int size : whole ? List.of((int) status.getLen()) : sizes) {
                StringBuilder counts = new StringBuilder().append(size);
                PrintStream expected = first ? lines(name + ".expected") : null;
                for (long at = 0; at < status.getLen(); at += size) {
                    FileSplit split = new FileSplit(path, at, Math.min(size, status.getLen() - at), new String[0]);
                    counts.append(' ').append(count(format, split, job, expected));
                }
                if (expected != null) expected.close();
                out.println(counts);
            }
        }
    }

    static <K, V> int count(InputFormat<K, V> format, InputSplit split, JobConf job, PrintStream lines) throws Exception {
        try (RecordReader<K, V> reader = format.getRecordReader(split, job, Reporter.NULL)) {
            K key = reader.createKey();
            V value = reader.createValue();
            int count = 0;
            for (; reader.next(key, value); count++)
                if (lines != null) lines.println(value);
            return count;
        }
    }

    // Avro and ORC

    static void avroFiles() throws Exception {
        Schema schema = new Schema.Parser().parse("{\"type\":\"record\",\"name\":\"Row\",\"fields\":["
                + "{\"name\":\"id\",\"type\":\"long\"},{\"name\":\"text\",\"type\":[\"null\",\"string\"]},"
                + "{\"name\":\"list\",\"type\":{\"type\":\"array\",\"items\":\"double\"}}]}");
        for (String codec : List.of("null", "deflate", "snappy", "bzip2")) {
            String name = "rows-" + codec + ".avro";
            File file = new File(theirs.toUri().getPath(), name);
            try (PrintStream expected = lines(name + ".expected");
                    DataFileWriter<GenericRecord> writer = new DataFileWriter<>(new GenericDatumWriter<>(schema))) {
                writer.setCodec(CodecFactory.fromString(codec)).setSyncInterval(2000).create(schema, file);
                for (int number = 0; number < 1000; number++) {
                    GenericRecord row = new GenericData.Record(schema);
                    row.put("id", (long) number);
                    row.put("text", number % 3 == 0 ? null : words(number % 9));
                    row.put("list", List.of(number / 4.0, -1.5));
                    writer.append(row);
                    expected.println(row);
                }
            }
            avroSplits(file, name);
        }
    }

    static void avroSplits(File file, String name) throws Exception {
        try (PrintStream out = lines(name + ".splits");
                DataFileReader<GenericRecord> reader = new DataFileReader<>(file, new GenericDatumReader<>())) {
            for (int size : List.of(3000, 30000)) {
                out.print(size);
                for (long at = 0; at < file.length(); at += size) {
                    int count = 0;
                    // As AvroRecordReader does it.
                    for (reader.sync(at); reader.hasNext() && !reader.pastSync(at + size); count++) reader.next();
                    out.print(" " + count);
                }
                out.println();
            }
        }
    }

    static void orcFiles() throws Exception {
        for (String kind : List.of("NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD")) {
            String name = "rows-" + kind + ".orc";
            org.apache.orc.TypeDescription schema =
                    org.apache.orc.TypeDescription.fromString("struct<id:bigint,text:string,score:double>");
            try (PrintStream expected = lines(name + ".expected");
                    org.apache.orc.Writer writer = org.apache.orc.OrcFile.createWriter(new Path(theirs, name),
                            org.apache.orc.OrcFile.writerOptions(conf).setSchema(schema).stripeSize(20000)
                                    .compress(org.apache.orc.CompressionKind.valueOf(kind)))) {
                var batch = schema.createRowBatch(100);
                var ids = (org.apache.orc.storage.ql.exec.vector.LongColumnVector) batch.cols[0];
                var texts = (org.apache.orc.storage.ql.exec.vector.BytesColumnVector) batch.cols[1];
                var scores = (org.apache.orc.storage.ql.exec.vector.DoubleColumnVector) batch.cols[2];
                for (int number = 0; number < 10000; number++) {
                    int row = batch.size++;
                    String text = words(number % 5);
                    ids.vector[row] = number;
                    texts.setVal(row, text.getBytes(StandardCharsets.UTF_8));
                    scores.vector[row] = number / 8.0;
                    expected.println("{\"id\":" + number + ",\"text\":\"" + text + "\",\"score\":" + number / 8.0 + "}");
                    if (batch.size == 100) { writer.addRowBatch(batch); batch.reset(); }
                }
            }
        }
    }

    // What howdah wrote

    static void read(File file, File into) throws Exception {
        try (PrintStream out = new PrintStream(new FileOutputStream(into), false, "UTF-8")) {
            Path path = new Path(file.toURI());
            if (file.getName().endsWith(".gz")) {
                JobConf job = new JobConf(conf);
                TextInputFormat format = new TextInputFormat();
                format.configure(job);
                count(format, new FileSplit(path, 0, file.length(), new String[0]), job, out);
                return;
            }
            if (file.getName().startsWith("parquet-")) {
                try (ParquetReader<Group> rows = ParquetReader.builder(new GroupReadSupport(), path).build()) {
                    for (Group row = rows.read(); row != null; row = rows.read()) out.println(
                            row.getLong("id", 0) + "\t" + row.getString("text", 0) + "\t" + row.getDouble("part", 0));
                }
                return;
            }
            try (SequenceFile.Reader reader = new SequenceFile.Reader(conf, SequenceFile.Reader.file(path))) {
                Writable key = (Writable) ReflectionUtils.newInstance(reader.getKeyClass(), conf);
                Writable value = (Writable) ReflectionUtils.newInstance(reader.getValueClass(), conf);
                while (reader.next(key, value)) out.println(shown(key) + "\t" + shown(value));
            }
        }
    }

    static PrintStream lines(String name) throws IOException {
        File file = new File(theirs.toUri().getPath(), name);
        return new PrintStream(new BufferedOutputStream(new FileOutputStream(file)), false, "UTF-8");
    }
}
