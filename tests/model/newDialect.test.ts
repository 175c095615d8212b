// A new dialect is one file and one line. A copy of the sources gets one as CONTRIBUTING says, and the program of the copy asks a server in it.

import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { REPO, tempDir } from '../support/cli.ts';

/** A request is the last message, a reply is a text. */
const DIALECT = `import type { Dialect } from '../dialect.ts';
import { NO_FACTS } from '../dialect.ts';

export const toyDialect: Dialect = {
  name: 'toy' as never,
  target: () => ({ path: '/say', headers: {} }),
  parameters: () => ({}),
  createWriter: () => ({
    write: (messages) => Buffer.from(JSON.stringify({ heard: messages.at(-1)!.content })),
  }),
  read: (body) => {
    const content = String((body as { said: unknown }).said);
    const message = { role: 'assistant', content } as const;
    return { kind: 'reply', reply: { ...NO_FACTS, finishReason: 'stop', message, content, toolCalls: [] } };
  },
  factsOf: () => NO_FACTS,
  readUsage: () => ({ usage: null, cacheWrite1h: 0, notes: [] }),
  assemble: () => {
    throw new Error('no stream');
  },
};
`;

test('one file and one line make a dialect, which a model is asked in', { timeout: 120_000 }, async () => {
  const dir = tempDir('dialect-');
  const copy = join(dir, 'swebatch');
  for (const part of ['src', 'package.json', 'configs'])
    cpSync(join(REPO, part), join(copy, part), { recursive: true });
  symlinkSync(join(REPO, 'node_modules'), join(copy, 'node_modules'));
  mkdirSync(join(copy, 'src/model/dialects/toy'));
  writeFileSync(join(copy, 'src/model/dialects/toy/toyDialect.ts'), DIALECT);
  const table = join(copy, 'src/model/dialects/dialects.ts');
  const opened = 'export const DIALECTS = {\n';
  const text = readFileSync(table, 'utf8');
  expect(text).toContain(opened);
  const line = `  toy: { openAi: false, cacheMarks: 'none', load: async () => (await import('./toy/toyDialect.ts')).toyDialect },\n`;
  writeFileSync(table, text.replace(opened, `${opened}${line}`));

  const heard: string[] = [];
  const says = [
    'echo hello > said.txt',
    'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; git add -A; git diff --cached',
  ];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      heard.push(`${request.url} ${body}`);
      const said = `\`\`\`bash\n${says[heard.length - 1]}\n\`\`\``;
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ said }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const repo = join(dir, 'repo');
  execFileSync('git', ['init', '-q', repo]);
  writeFileSync(join(repo, 'README'), 'toy\n');
  const git = (...words: string[]) =>
    execFileSync('git', ['-C', repo, '-c', 'user.name=t', '-c', 'user.email=t@example.org', ...words]);
  git('add', '.');
  git('commit', '-qm', 'begin');
  const row = {
    instance_id: 'toy-1',
    ...{ repo: 'toy/toy', base_commit: 'HEAD', problem_statement: 'Say hello.', patch: '', test_patch: '' },
    ...{ FAIL_TO_PASS: [], PASS_TO_PASS: [], version: '1' },
  };
  writeFileSync(join(dir, 'toys.jsonl'), `${JSON.stringify(row)}\n`);
  const args = [
    ...[
      'run',
      '--subset',
      'toys.jsonl',
      '-m',
      'toy-1',
      '--run-id',
      'toys',
      '-o',
      'out',
      '--progress',
      'none',
    ],
    ...['-c', 'model.dialect=toy', '-c', `model.base_url=${url}`, '-c', 'model.prices=free'],
    ...['-c', 'environment.environment_class=local', '-c', `environment.cwd=${repo}`],
    ...['-c', 'run.retry.attempts=1'],
  ];
  const env = { ...process.env, XDG_CACHE_HOME: join(dir, 'cache'), NO_COLOR: '1' };
  const ran = await promisify(execFile)(process.execPath, [join(copy, 'src/cli/bin.ts'), ...args], {
    cwd: dir,
    env,
  }).catch((error: { stdout: string; stderr: string }) => error);
  server.close();
  const predictions = join(dir, 'out', 'toys', 'preds.json');
  expect(existsSync(predictions), ran.stderr).toBe(true);
  expect(JSON.parse(readFileSync(predictions, 'utf8'))['toy-1'].model_patch, ran.stderr).toContain(
    '+hello\n',
  );
  expect(heard[0]).toMatch(/^\/say \{"heard":".*Say hello\./);
});
