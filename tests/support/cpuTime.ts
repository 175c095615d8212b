// What work costs on the processor: unlike elapsed time it does not depend on what else the machine does.

/** Milliseconds of processor time of this thread while `work` runs. */
export function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
