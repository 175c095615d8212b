// A new kind of environment is one folder and one line of environments.ts. A copy of the sources gets one as CONTRIBUTING says, and the
// program of the copy runs a trial in it. The other rooms name no kind, and load none that is not used.

import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { rawRow } from '../dataset/rows.ts';
import { REPO, tempDir } from '../support/cli.ts';

const dir = tempDir('environment-');
const copy = join(dir, 'swebatch');

const TOY = `import { z } from 'zod';
import { runtime } from '../../base/fieldClass.ts';
import { recordOf } from '../../base/isRecord.ts';
import { NO_CAPABILITIES } from '../capabilities.ts';
import type { EnvironmentKind } from '../environmentKind.ts';

export const toy: EnvironmentKind = {
  name: 'toy',
  title: 'Toy',
  ownKeys: z.strictObject({ greeting: z.string().default('hello').meta(runtime('what every command answers')) }),
  inImages: false,
  onThisMachine: false,
  engines: 'none',
  grades: true,
  capabilities: NO_CAPABILITIES,
  create: async (config) => (await import('./toyFactory.ts')).toyFactory(String(recordOf(recordOf(config).toy).greeting)),
  findings: async (arms) => arms.map(({ name }) => ({ what: \`toy of \${name}\`, ok: true, detail: 'it is there', fix: null })),
};
`;
const FACTORY = `import { completeFactory } from '../capabilities.ts';
import type { CommandResult, EnvironmentFactory } from '../environment.ts';

const PATCH = 'diff --git a/toy b/toy\\nnew file mode 100644\\n--- /dev/null\\n+++ b/toy\\n@@ -0,0 +1 @@\\n+toy\\n';

export const toyFactory = (greeting: string): EnvironmentFactory => completeFactory({
  kind: 'toy',
  start: async () => ({
    info: { kind: 'toy', transport: 'exec', history: 'absent', notes: [] },
    execute: async (command): Promise<CommandResult> => {
      const output = command.includes('COMPLETE_TASK') ? \`COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\\n\${PATCH}\` : greeting;
      const raw = new TextEncoder().encode(output);
      return {
        ...{ output, raw, exitCode: 0, timedOut: false, totalBytes: raw.length, omittedBytes: 0, replacedBytes: 0 },
        ...{ durationMs: 0, oomKilled: false, transport: 'exec', exceptionInfo: '' },
      };
    },
    templateVars: () => ({}),
    capturePatch: async () => ({ patch: new TextEncoder().encode(PATCH), state: 'ok', warnings: [] }),
    putFile: async () => {},
    getFile: async () => new Uint8Array(),
    close: async () => {},
  }),
  close: async () => {},
});
`;

beforeAll(() => {
  for (const part of ['src', 'package.json', 'configs'])
    cpSync(join(REPO, part), join(copy, part), { recursive: true });
  symlinkSync(join(REPO, 'node_modules'), join(copy, 'node_modules'));
  mkdirSync(join(copy, 'src/environment/toy'));
  writeFileSync(join(copy, 'src/environment/toy/toy.ts'), TOY);
  writeFileSync(join(copy, 'src/environment/toy/toyFactory.ts'), FACTORY);
  const table = join(copy, 'src/environment/environments.ts');
  const text = readFileSync(table, 'utf8');
  const line = '[docker, kubernetes, local]';
  expect(text).toContain(line);
  writeFileSync(
    table,
    `import { toy } from './toy/toy.ts';\n${text.replace(line, '[docker, kubernetes, local, toy]')}`,
  );
  writeFileSync(join(dir, 'rows.jsonl'), `${JSON.stringify(rawRow('toy__toy-1'))}\n`);
});

/** Notes which files the program loads. */
const WATCH = `import { registerHooks } from 'node:module';
import { appendFileSync } from 'node:fs';
registerHooks({ load(url, context, next) { appendFileSync(process.env.LOADED, url + '\\n'); return next(url, context); } });
`;

async function program(...args: string[]) {
  writeFileSync(join(dir, 'watch.mjs'), WATCH);
  const loaded = join(dir, 'loaded.txt');
  writeFileSync(loaded, '');
  const env = { ...process.env, XDG_CACHE_HOME: join(dir, 'cache'), NO_COLOR: '1', LOADED: loaded };
  const ran = await promisify(execFile)(
    process.execPath,
    ['--import', join(dir, 'watch.mjs'), join(copy, 'src/cli/bin.ts'), ...args],
    { cwd: dir, env },
  ).catch((error: { stdout: string; stderr: string }) => error);
  return { ...ran, loaded: readFileSync(loaded, 'utf8') };
}

test('a trial runs in it, by its own key; nothing of pods is loaded', async () => {
  writeFileSync(
    join(dir, 'replies.json'),
    JSON.stringify({
      replies: ['```bash\nls\n```', '```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```'],
    }),
  );
  writeFileSync(
    join(dir, 'toy.yaml'),
    JSON.stringify({
      agent: { system_template: 'You help.', instance_template: '{{task}}' },
      environment: { environment_class: 'toy', toy: { greeting: 'good day' } },
      run: { disk_floor: '0' },
    }),
  );
  const ran = await program(
    ...['run', '--subset', 'rows.jsonl', '-m', 'scripted:replies.json', '-c', 'toy.yaml'],
    ...['--run-id', 'r1', '-o', 'out', '--progress', 'plain'],
  );
  expect(ran.stderr).toContain('toy__toy-1 submitted');
  const shown = await program('show', 'r1', 'toy__toy-1', '-o', 'out');
  expect(shown.stdout).toContain('good day');
  expect(shown.stdout).toContain('+toy');
  expect(ran.loaded).toContain('toyFactory.ts');
  expect(ran.loaded).not.toContain('@kubernetes/client-node');
  expect(ran.loaded).not.toContain('kubernetesFactory.ts');
  expect(ran.loaded).not.toContain('dockerFactory.ts');
});

test('doctor asks it, and a key that it does not have is refused', async () => {
  const told = await program('doctor', '-c', 'environment.environment_class=toy', '-m', 'fake', '-o', 'out');
  expect(told.stdout).toMatch(/ok +toy of \S+: it is there/);
  const refused = await program('doctor', '-c', 'environment.toy.colour=red', '-m', 'fake', '-o', 'out');
  expect(refused.stdout + refused.stderr).toContain('colour');
});

/** Words of other programs, and of this contract, that are spelled as a kind is. */
const OTHERS = [
  "runProgram('docker', ['--version'])",
  "{ type: 'local', command:",
  "where !== 'local'",
  "transport: 'local'",
  "Argument list too long: 'docker'",
  "?? 'local'",
  "value === 'docker' ? 'drop'",
  "    'docker',",
  'Omit<ImageServiceOptions',
];

test('the rooms of the core name no kind', () => {
  const named = ['run', 'report', 'store', 'results', 'config', 'cli', 'agent', 'grading'].flatMap((room) =>
    readdirSync(join(REPO, 'src', room), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.tsx?$/.test(file))
      .flatMap((file) =>
        readFileSync(join(REPO, 'src', room, file), 'utf8')
          .split('\n')
          .filter((line) => /'(?:docker|kubernetes|local)'|environment\.kubernetes/.test(line))
          .filter((line) => !OTHERS.some((words) => line.includes(words)))
          .map((line) => `${room}/${file}: ${line.trim()}`),
      ),
  );
  expect(named).toEqual([]);
});
