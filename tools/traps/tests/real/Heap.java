import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;

/**
 * Maps, lists and garbage from four threads, in a heap of about 60 MB, and 30 MB more for every
 * SCALE.
 */
public class Heap {
    static long[] row(long random, int thread, int i) {
        long[] row = new long[128];
        row[0] = i;
        row[1] = random;
        row[2] = thread;
        row[7] = i;
        return row;
    }

    static long work(int thread, int scale) {
        SplittableRandom random = new SplittableRandom(42 + thread);
        Map<Long, long[]> table = new HashMap<>();
        TreeMap<String, Integer> names = new TreeMap<>();
        for (int i = 0; i < 6_000 * scale; i++) {
            table.put(random.nextLong(), row(random.nextLong(), thread, i));
            if (i % 4 == 0) {
                names.put(Long.toHexString(random.nextLong()), i);
            }
        }
        long sum = 0;
        for (Map.Entry<Long, long[]> entry : table.entrySet()) {
            long[] row = entry.getValue();
            sum += entry.getKey() ^ row[1] * row[0] + row[7];
        }
        for (int round = 0; round < 10; round++) {
            List<byte[]> garbage = new ArrayList<>();
            for (int i = 0; i < 500; i++) {
                byte[] block = new byte[4096];
                block[i] = (byte) round;
                garbage.add(block);
            }
            sum = sum * 31 + garbage.get(round)[round];
        }
        for (Map.Entry<String, Integer> entry : names.entrySet()) {
            sum = sum * 31 + entry.getKey().hashCode() + entry.getValue();
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        int scale = Integer.parseInt(System.getenv("SCALE"));
        long[] sums = new long[4];
        Thread[] threads = new Thread[sums.length];
        for (int i = 0; i < threads.length; i++) {
            int thread = i;
            threads[i] = new Thread(() -> sums[thread] = work(thread, scale));
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        for (long sum : sums) {
            System.out.println(sum);
        }
    }
}
