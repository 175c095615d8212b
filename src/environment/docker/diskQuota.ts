/** Whether the storage driver can limit a container's disk by itself. */
import type Docker from 'dockerode';
import { z } from 'zod';
import { parseSize } from '../../base/text/units.ts';

const infoSchema = z.object({
  Driver: z.string().default(''),
  DriverStatus: z.array(z.array(z.string())).nullish(),
});

const QUOTA_DRIVERS = new Set(['btrfs', 'zfs', 'devicemapper', 'windowsfilter']);

/**
 * Bytes to pass as `--storage-opt size`, 0 where the driver has no quota. overlay2 has one only on xfs mounted with pquota, which
 * cannot be seen from outside: it is tried, and `refused` remembers the answer.
 */
export interface QuotaProbe {
  bytes(): Promise<number>;
  /** True when this error says that the driver has no quota: create again without. */
  refused(error: unknown): boolean;
}

export function createQuotaProbe(docker: Docker, disk: string): QuotaProbe {
  const limit = parseSize(disk);
  let supported: Promise<boolean> | undefined;
  const probe = async () => {
    const info = infoSchema.safeParse(await docker.info().catch(() => ({})));
    if (!info.success) return false;
    const backing = info.data.DriverStatus?.find(([name]) => name === 'Backing Filesystem')?.[1] ?? '';
    return QUOTA_DRIVERS.has(info.data.Driver) || (info.data.Driver === 'overlay2' && backing === 'xfs');
  };
  return {
    async bytes() {
      if (limit <= 0) return 0;
      supported ??= probe();
      return (await supported) ? limit : 0;
    },
    refused(error) {
      if (!/storage-opt|pquota|storage option/i.test(String(error))) return false;
      supported = Promise.resolve(false);
      return true;
    },
  };
}
