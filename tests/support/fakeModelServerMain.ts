/**
 * The fake model server as a process of its own:
 *   node tests/support/fakeModelServerMain.ts [--scripts DIR_OR_FILE] [--dataset FILE.jsonl] [--by request|history]
 *     [--latency-ms N] [--port N] [--keep-bodies]
 * Prints one JSON line {"url": ...} when it listens, and one {"requests": n, "connections": n} for each line on stdin. It
 * ends with its stdin, so that it never outlives the test that started it.
 * A folder of scripts holds <key>.json files in the form of scripted models, with fault fields allowed. With --dataset a
 * request is matched to an instance by its problem statement.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import type { Script } from './fakeAnswer.ts';
import { startFakeModelServer } from './fakeModelServer.ts';

const { values } = parseArgs({
  options: {
    scripts: { type: 'string' },
    dataset: { type: 'string' },
    by: { type: 'string', default: 'history' },
    'latency-ms': { type: 'string', default: '0' },
    port: { type: 'string', default: '0' },
    'keep-bodies': { type: 'boolean', default: false },
  },
});

function readScript(file: string): Script {
  const data = JSON.parse(readFileSync(file, 'utf8')) as Script | { replies: Script };
  return 'replies' in data ? data.replies : data;
}

function readScripts(path: string): Record<string, Script> {
  if (!statSync(path).isDirectory()) return { default: readScript(path) };
  const files = readdirSync(path).filter((name) => name.endsWith('.json'));
  return Object.fromEntries(files.map((name) => [basename(name, '.json'), readScript(join(path, name))]));
}

function readStatements(file: string): Record<string, string> {
  const rows = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return Object.fromEntries(
    rows.map((line) => {
      const row = JSON.parse(line) as { instance_id: string; problem_statement: string };
      return [row.instance_id, row.problem_statement];
    }),
  );
}

const server = await startFakeModelServer({
  scripts: values.scripts ? readScripts(values.scripts) : { default: ['ok'] },
  statements: values.dataset ? readStatements(values.dataset) : {},
  by: values.by === 'request' ? 'request' : 'history',
  latencyMs: Number(values['latency-ms']),
  port: Number(values.port),
  keepBodies: values['keep-bodies'],
});
process.stdout.write(`${JSON.stringify({ url: server.url })}\n`);

const lines = createInterface({ input: process.stdin });
lines.on('line', () => {
  process.stdout.write(
    `${JSON.stringify({ requests: server.count(), connections: server.connections() })}\n`,
  );
});
lines.on('close', () => void server.close().then(() => process.exit(0)));
