// Runs two versions of swebatch on the same things and compares what comes out: the demo run, and public data of the field.
//   node scripts/compareVersions.ts OLD_CHECKOUT NEW_CHECKOUT [--data DIR] [--only ITEM,...] [--work DIR]
// Both checkouts run from their sources (`src/cli/bin.ts`): each needs `npm ci`, and `npm run build:viewer` for the bundle of `view`. --data is the folder with
// `data` and `golden` (default: `shared` beside this repository); what it lacks is left out and said. The demo run needs Docker and
// the images of `npm run setup`. Each version works in a folder of the same name, one after the other, so paths are equal.
// --work keeps what came out in DIR; what the old version left there is taken as it is, so that only the new one runs again.
// Exit code 0: the same; 1: something differs.
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { compareFolders, RULES } from './compareVersions/compareFolders.ts';
import { ITEMS, type Item } from './compareVersions/items.ts';
import { createSession, type Shared } from './compareVersions/session.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    data: { type: 'string', default: join(import.meta.dirname, '..', '..', 'shared') },
    only: { type: 'string' },
    work: { type: 'string' },
  },
});
const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** Runs every item with one version, in `work/here`, and puts each folder aside under the version's name. */
async function record(checkout: string, name: string, items: readonly Item[], shared: Shared): Promise<void> {
  for (const item of items) {
    const started = Date.now();
    const [here, aside] = [join(shared.work, 'here', item.name), join(shared.work, name, item.name)];
    if (name === 'old' && existsSync(aside)) continue;
    for (const folder of [here, aside]) rmSync(folder, { recursive: true, force: true });
    mkdirSync(here, { recursive: true });
    mkdirSync(join(shared.work, name), { recursive: true });
    await item.run(createSession(checkout, here), shared);
    renameSync(here, aside);
    say(`${name}: ${item.name} (${((Date.now() - started) / 1000).toFixed(0)} s)`);
  }
}

function missingOf(item: Item, shared: Shared): string[] {
  return item.needs.map((path) => join(shared.data, path)).filter((path) => !existsSync(path));
}

/** One line for each item, and below it up to five of its differences. */
function show(items: readonly Item[], shared: Shared, checkout: string): number {
  let differing = 0;
  for (const item of items) {
    const [old, now] = ['old', 'new'].map((name) => join(shared.work, name, item.name));
    const { files, differences } = compareFolders(old!, now!, item.origin, checkout);
    const head = differences.length === 0 ? 'same     ' : 'DIFFERENT';
    process.stdout.write(`${head}  ${item.name.padEnd(10)}  ${files} files  ${item.what}\n`);
    for (const line of differences.slice(0, 5)) process.stdout.write(`             ${line}\n`);
    if (differences.length > 5) process.stdout.write(`             and ${differences.length - 5} more\n`);
    differing += differences.length > 0 ? 1 : 0;
  }
  return differing;
}

async function main(): Promise<number> {
  const [old, now] = positionals.map((path) => resolve(path));
  if (!old || !now || positionals.length > 2) {
    say(
      'usage: node scripts/compareVersions.ts OLD_CHECKOUT NEW_CHECKOUT [--data DIR] [--only ITEM,...] [--work DIR]',
    );
    return 2;
  }
  const wanted = values.only?.split(',');
  const work = values.work ? resolve(values.work) : mkdtempSync(join(tmpdir(), 'swebatch-compare-'));
  const shared: Shared = { work, data: resolve(values.data), checkout: old };
  const asked = ITEMS.filter((item) => !wanted || wanted.includes(item.name));
  const demo = asked.some((item) => item.afterDemo);
  const chosen = ITEMS.filter((item) => asked.includes(item) || (demo && item.name === 'demo'));
  const items = chosen.filter((item) => missingOf(item, shared).length === 0);
  for (const item of chosen)
    for (const path of missingOf(item, shared)) say(`left out: ${item.name}, because ${path} is not there`);
  try {
    await record(old, 'old', items, shared);
    await record(now, 'new', items, shared);
    const differing = show(items, shared, now);
    process.stdout.write('\nNot compared:\n');
    for (const { what } of RULES) process.stdout.write(`  ${what}\n`);
    return differing > 0 ? 1 : 0;
  } finally {
    if (!values.work) rmSync(work, { recursive: true, force: true });
  }
}

process.exitCode = await main();
