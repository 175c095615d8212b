/** The verbs, in the order in which help lists them. Only the one that is asked for is loaded: the others' modules take time and memory. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Verb } from './flags/verb.ts';

const loaders: Readonly<Record<string, () => Promise<Verb>>> = {
  run: async () => (await import('./verbs/run.ts')).runVerb,
  resume: async () => (await import('./verbs/run.ts')).resumeVerb,
  report: async () => (await import('./verbs/report.ts')).reportVerb,
  compare: async () => (await import('./verbs/compare.ts')).compareVerb,
  view: async () => (await import('./verbs/view.ts')).viewVerb,
  evaluate: async () => (await import('./verbs/evaluate.ts')).evaluateVerb,
  export: async () => (await import('./verbs/export.ts')).exportVerb,
  doctor: async () => (await import('./verbs/doctor.ts')).doctorVerb,
  ls: async () => (await import('./verbs/ls.ts')).lsVerb,
  show: async () => (await import('./verbs/show.ts')).showVerb,
  ctl: async () => (await import('./verbs/ctl.ts')).ctlVerb,
  delete: async () => (await import('./verbs/delete.ts')).deleteVerb,
  baseline: async () => (await import('./verbs/baseline.ts')).baselineVerb,
  verify: async () => (await import('./verbs/verify.ts')).verifyVerb,
  import: async () => (await import('./verbs/import.ts')).importVerb,
  join: async () => (await import('./verbs/join.ts')).joinVerb,
  replay: async () => (await import('./verbs/replay.ts')).replayVerb,
  datasets: async () => (await import('./verbs/datasets.ts')).datasetsVerb,
  models: async () => (await import('./verbs/models.ts')).modelsVerb,
  images: async () => (await import('./verbs/images.ts')).imagesVerb,
  agents: async () => (await import('./verbs/agents.ts')).agentsVerb,
  'config show': async () => (await import('./verbs/configShow.ts')).configShowVerb,
  clean: async () => (await import('./verbs/clean.ts')).cleanVerb,
  completion: async () => (await import('./verbs/completion.ts')).completionVerb(allVerbs),
};

/** The verbs that a newcomer needs; help names the others in one line. */
const FRONT = 8;

export const VERBS: readonly string[] = Object.keys(loaders);
export const FURTHER_VERBS = VERBS.slice(FRONT);

/** Verbs that were called otherwise. */
export const RENAMED: Readonly<Record<string, string>> = {
  top: 'ctl RUN',
  engines: 'ctl RUN engines',
  'run stop': 'ctl RUN stop',
  'run delete': 'delete RUN',
};

/** Verbs that only read the record do not load the client of the engine, which is most of the code. */
const READERS: ReadonlySet<string> = new Set([
  'report',
  'ls',
  'show',
  'view',
  'baseline',
  'verify',
  'models',
  'ctl',
  'delete',
  'config show',
  'completion',
]);

let enginesFound = false;

/** Tells every client of this process how to find the default engine. */
async function findEngines(): Promise<void> {
  enginesFound = true;
  const { chooseEngine } = await import('../environment/places/chosenEngine.ts');
  const { engineOptions } = await import('../run/places/engines.ts');
  chooseEngine(() => engineOptions(process.env));
}

/** Node keeps idle connections open for some seconds, and the process would wait for them. */
export function closeConnections(): void {
  if (!enginesFound) return;
  // As a module it would load all that it has, a WebSocket too.
  process.getBuiltinModule('node:http').globalAgent.destroy();
}

export async function loadVerb(name: string): Promise<Verb> {
  if (!READERS.has(name)) await findEngines();
  return loaders[name]!();
}

/** Every verb; no client of an engine is made for them, because only their tables are read. */
export const allVerbs = (): Promise<Verb[]> => Promise.all(Object.values(loaders).map((one) => one()));

/** A verb as help lists it. */
export type ListedVerb = Pick<Verb, 'usage' | 'describe'>;

/** Written by the build, because the modules of verbs are most of the program. */
export const LISTED_VERBS = 'verbs.json';

/** The verbs of the first page of help. */
export async function listVerbs(): Promise<readonly ListedVerb[]> {
  const built = join(import.meta.dirname, LISTED_VERBS);
  if (existsSync(built)) return JSON.parse(readFileSync(built, 'utf8')) as ListedVerb[];
  return (
    await Promise.all(
      Object.values(loaders)
        .slice(0, FRONT)
        .map((one) => one()),
    )
  ).map(({ usage, describe }) => ({ usage, describe }));
}
