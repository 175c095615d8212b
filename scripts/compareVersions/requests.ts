// What is sent to a model: a server that keeps every request answers with the replies that were recorded with the real agents.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startFakeModelServer } from '../../tests/support/fakeModelServer.ts';
import type { Session, Shared } from './session.ts';

interface Golden {
  instance: { instance_id: string; problem_statement: string };
  replies: { message: { content: string | null }; finish_reason: string }[];
}

/** Configurations that a recording is played through: the published ones and ours. */
const PLAYS: readonly (readonly [golden: string, compat: string, configs: readonly string[]])[] = [
  ['v1-swebench-text', 'mini-swe-agent-1', ['mini-swe-agent-1.17.5.swebench.yaml']],
  [
    'v2-swebench-toolcall',
    'mini-swe-agent-2',
    ['mini-swe-agent-2.4.6.swebench.yaml', 'swebench.yaml', 'nightly.yaml'],
  ],
  ['v2-swebench_backticks-text', 'mini-swe-agent-2', ['mini-swe-agent-2.4.6.swebench_backticks.yaml']],
  ['v1-swebench-text', '', ['default.yaml', 'swebench-text.yaml']],
];
/** Both versions call the same address, which stands in the record. */
const PORT = 47_811;

export async function recordRequests(session: Session, { data, checkout }: Shared): Promise<void> {
  for (const [name, compat, configs] of PLAYS) {
    const golden = JSON.parse(
      readFileSync(join(data, 'golden', 'requests', `${name}.json`), 'utf8'),
    ) as Golden;
    const row = { ...golden.instance, repo: 'demo/demo', base_commit: '0'.repeat(40), FAIL_TO_PASS: ['a'] };
    writeFileSync(join(session.folder, 'data.jsonl'), `${JSON.stringify(row)}\n`);
    for (const config of configs) {
      const replies = golden.replies.map(({ message, finish_reason }) => ({ ...message, finish_reason }));
      const server = await startFakeModelServer({ replies, port: PORT });
      const work = join(session.folder, 'work');
      mkdirSync(work, { recursive: true });
      const file = join(
        config.startsWith('mini') ? join(data, 'data', 'configs') : join(checkout, 'configs'),
        config,
      );
      const settings = [
        ...[file, 'environment.environment_class=local', `environment.cwd=${work}`, 'model.prices=free'],
        ...[`model.base_url=${server.url}`, ...(compat ? [`agent.compat=${compat}`] : [])],
      ].flatMap((setting) => ['-c', setting]);
      const run = `${name}-${config}`;
      await session.call(
        ...['run', '--subset', 'data.jsonl', '-m', 'openai/fake', '-w', '1', '-o', 'results'],
        ...['--run-id', run, '--progress', 'none', ...settings],
      );
      const sent = server.requests.map(({ path, headers, body }) => JSON.stringify({ path, headers, body }));
      session.keep(`${run}.requests`, sent.join('\n'));
      await server.close();
    }
  }
}
