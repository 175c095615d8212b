// Preloaded into a measured process: what it used, written as JSON when it ends.
import { readFileSync, writeFileSync } from 'node:fs';

process.on('exit', () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  // Not maxRSS: a new process takes that over from the one that started it.
  const peak = /VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1];
  writeFileSync(
    process.env.SWEBATCH_BENCH_OUT,
    JSON.stringify({ user_s: userCPUTime / 1e6, system_s: systemCPUTime / 1e6, rss_mb: Number(peak) / 1024 }),
  );
});
