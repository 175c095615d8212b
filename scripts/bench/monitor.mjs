// Preloaded into the measured process: event-loop delay and peak memory, written as JSON when it ends.
import { readFileSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();
const rss = [];
const timer = setInterval(() => rss.push(process.memoryUsage.rss()), 500);
timer.unref();
/** Seconds that the main thread was ready and another process had the processor: what of the delay is the machine's. */
function waitedForCpu() {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[1]) / 1e9;
  } catch {
    return null;
  }
}
process.on('exit', () => {
  delay.disable();
  writeFileSync(
    process.env.SWEBATCH_BENCH_OUT,
    JSON.stringify({
      loop_p50_ms: delay.percentile(50) / 1e6,
      loop_p99_ms: delay.percentile(99) / 1e6,
      loop_max_ms: delay.max / 1e6,
      peak_rss_mb: process.resourceUsage().maxRSS / 1024,
      rss_mb: rss.map((bytes) => Math.round(bytes / 2 ** 20)),
      cpu_wait_s: waitedForCpu(),
      cpu_s: (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
    }),
  );
});
