/**
 * Wall time of a simulated night of 500 instances under dataset order, shuffle and longest first, with images pulled ahead of the slots and
 * inside them. Time is virtual; the pull jobs, its bounds and the ordering are the real ones, only engine and trials are simulated. Prints
 * raw samples and medians. `node scripts/bench/night.ts [--json] [--instances 500] [--slots 16] [--nights 5]`
 */
import { parseArgs } from 'node:util';
import PQueue from 'p-queue';
import type { ImageEngine, LocalImage } from '../../src/environment/places/imageEngine.ts';
import { createImageJobs } from '../../src/environment/places/imageJobs.ts';
import { imagesConfigSchema } from '../../src/environment/places/imagesConfig.ts';
import { type PullClock, pullThrottle } from '../../src/environment/places/pullImage.ts';
import { type OrderMode, orderTrials } from '../../src/run/schedule/order.ts';

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    instances: { type: 'string', default: '500' },
    slots: { type: 'string', default: '16' },
    nights: { type: 'string', default: '5' },
  },
});
const INSTANCES = Number(flags.instances);
const SLOTS = Number(flags.slots);
const NIGHTS = Number(flags.nights);

/** SWE-bench Verified: 12 repositories, django nearly half; images of one repository share most of their bytes. */
const REPOS = [
  ['django', 0.46],
  ['sympy', 0.15],
  ['sphinx', 0.09],
  ['matplotlib', 0.07],
  ['scikit-learn', 0.06],
  ['astropy', 0.05],
  ['xarray', 0.04],
  ['pytest', 0.04],
  ['pylint', 0.02],
  ['requests', 0.02],
] as const;
const IMAGE_MB = 1200;
const SHARED_FRACTION = 0.6;
const MB_PER_SECOND = 20;
const MEDIAN_SECONDS = 420;
const SPREAD = 0.9;
/** How well last night predicts this one: spread of the ratio between two runs of one instance. */
const NOISE = 0.35;

/** mulberry32: small, seeded, good enough for a simulation. */
function random(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
const normal = (next: () => number) => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());

interface Work {
  readonly instanceId: string;
  readonly model: string;
  readonly repo: string;
  readonly image: string;
  readonly seconds: number;
}

function night(seed: number): {
  work: Work[];
  history: { instanceId: string; model: string; repo: string; seconds: number }[];
} {
  const next = random(seed);
  const repoOf = (): string => {
    let r = next();
    for (const [repo, share] of REPOS) {
      r -= share;
      if (r <= 0) return repo;
    }
    return REPOS[0][0];
  };
  const work: Work[] = Array.from({ length: INSTANCES }, (_, i) => {
    const repo = repoOf();
    const seconds = Math.min(7200, MEDIAN_SECONDS * Math.exp(SPREAD * normal(next)));
    return { instanceId: `${repo}__${repo}-${i}`, model: 'm', repo, image: `bench/${repo}:${i}`, seconds };
  }).sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  const history = work.map(({ instanceId, model, repo, seconds }) => ({
    instanceId,
    model,
    repo,
    seconds: seconds * Math.exp(NOISE * normal(next)),
  }));
  return { work, history };
}

/** Time that moves to the next timer once nothing else can happen. */
function virtualTime() {
  let now = 0;
  const timers: { at: number; wake: () => void }[] = [];
  const sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((wake) => {
      const place = timers.findIndex((timer) => timer.at > now + ms);
      timers.splice(place < 0 ? timers.length : place, 0, { at: now + ms, wake });
      signal?.addEventListener('abort', () => wake(), { once: true });
    });
  const clock: PullClock = { now: () => now, sleep };
  async function run<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const result = work.finally(() => {
      done = true;
    });
    while (!done) {
      for (let i = 0; i < 3; i++) await new Promise((turn) => setImmediate(turn));
      if (done) break;
      const timer = timers.shift();
      if (!timer) throw new Error('nothing can happen any more');
      now = timer.at;
      timer.wake();
    }
    return result;
  }
  return { clock, sleep, run, now: () => now };
}

/** Pulls at a fixed rate a connection; the base of a repository comes once. */
function simulatedEngine(sleep: (ms: number) => Promise<void>): {
  engine: ImageEngine;
  pulledMb: () => number;
} {
  const local = new Map<string, LocalImage>();
  const bases = new Set<string>();
  let pulled = 0;
  const engine: ImageEngine = {
    answers: async () => undefined,
    info: async () => ({ id: 'bench', os: 'linux', architecture: 'amd64', rootDir: '/' }),
    inspect: async (name) => local.get(name.replace('docker.io/', '')),
    list: async () => [],
    tag: async () => {},
    remove: async () => ({ removed: true }),
    async pull({ repository, tagOrDigest }) {
      const mb = IMAGE_MB * (bases.has(repository) ? 1 - SHARED_FRACTION : 1);
      bases.add(repository);
      pulled += mb;
      await sleep((mb / MB_PER_SECOND) * 1000);
      const name = `${repository}:${tagOrDigest}`;
      local.set(name, {
        id: name,
        tags: [name],
        digests: [],
        os: 'linux',
        architecture: 'amd64',
        user: '',
        size: mb * 1e6,
        layers: [],
      });
    },
  };
  return { engine, pulledMb: () => pulled };
}

interface Sample {
  readonly seed: number;
  readonly order: OrderMode;
  readonly prefetch: boolean;
  readonly wallHours: number;
  /** Time slots spent with a trial, of all slot time. */
  readonly slotUse: number;
  /** What no order and no prefetch can beat: the work spread evenly, or the longest trial. */
  readonly boundHours: number;
}

async function simulate(seed: number, order: OrderMode, prefetch: boolean): Promise<Sample> {
  const { work, history } = night(seed);
  const time = virtualTime();
  const { engine } = simulatedEngine(time.sleep);
  const config = imagesConfigSchema.parse({ max_concurrent_pulls: 4, ahead: prefetch ? 8 : 0 });
  const jobs = createImageJobs({
    engine,
    config,
    clock: time.clock,
    pull: 'missing',
    stallMs: 0,
    throttle: pullThrottle({ pulls: 0, windowMs: 1 }),
    loginOf: async () => undefined,
    askReset: async () => undefined,
  });
  const slots = new PQueue({ concurrency: SLOTS });
  const admission = new PQueue({ concurrency: SLOTS + config.ahead });
  const trial = async ({ seconds }: Work) => time.sleep(seconds * 1000);
  const ahead = async (w: Work) => {
    await jobs.ensure(w.image, { signal: undefined, waits: () => undefined });
    await slots.add(() => trial(w));
  };
  const inside = (w: Work) =>
    slots.add(async () => {
      await jobs.ensure(w.image, { signal: undefined, waits: () => undefined });
      await trial(w);
    });
  const ordered = orderTrials(work, order, history, 42);
  const all = ordered.map((w) => (prefetch ? admission.add(() => ahead(w)) : inside(w)));
  await time.run(Promise.all(all));
  await jobs.close();
  const total = work.reduce((sum, w) => sum + w.seconds, 0);
  const longest = Math.max(...work.map((w) => w.seconds));
  const wall = time.now() / 1000;
  return {
    seed,
    order,
    prefetch,
    wallHours: wall / 3600,
    slotUse: total / (wall * SLOTS),
    boundHours: Math.max(total / SLOTS, longest) / 3600,
  };
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

const samples: Sample[] = [];
for (let seed = 1; seed <= NIGHTS; seed++)
  for (const order of ['dataset', 'shuffle', 'longest'] as const)
    for (const prefetch of [false, true]) samples.push(await simulate(seed, order, prefetch));

const parameters = {
  instances: INSTANCES,
  slots: SLOTS,
  nights: NIGHTS,
  imageMb: IMAGE_MB,
  sharedFraction: SHARED_FRACTION,
  mbPerSecondAndPull: MB_PER_SECOND,
  pullsAtATime: 4,
  medianSeconds: MEDIAN_SECONDS,
  spread: SPREAD,
  historyNoise: NOISE,
};
const groups = [...Map.groupBy(samples, (s) => `${s.order} ${s.prefetch}`).values()].map((list) => ({
  order: list[0]!.order,
  prefetch: list[0]!.prefetch,
  medianWallHours: median(list.map((s) => s.wallHours)),
  medianSlotUse: median(list.map((s) => s.slotUse)),
  medianOverBound: median(list.map((s) => s.wallHours / s.boundHours)),
}));
if (flags.json) process.stdout.write(`${JSON.stringify({ parameters, groups, samples }, null, 2)}\n`);
else {
  const out = (text: string) => process.stdout.write(`${text}\n`);
  out(JSON.stringify(parameters));
  out('\norder    images      wall (median)  slots in use  over the bound   wall of each night, h');
  for (const group of groups) {
    const each = samples
      .filter((s) => s.order === group.order && s.prefetch === group.prefetch)
      .map((s) => s.wallHours.toFixed(2));
    out(
      `${group.order.padEnd(8)} ${(group.prefetch ? 'ahead' : 'in slots').padEnd(10)}  ${`${group.medianWallHours.toFixed(2)} h`.padEnd(13)}  ` +
        `${`${(100 * group.medianSlotUse).toFixed(1)} %`.padEnd(12)}  ${`${(100 * (group.medianOverBound - 1)).toFixed(1)} %`.padEnd(15)}  ${each.join(' ')}`,
    );
  }
}
