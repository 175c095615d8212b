// Programs that nobody prepared, added by where they come from, in containers without network: they solve an instance through the gateway.
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  ACP_PROGRAMS,
  ADDED_ID,
  addedFromSource,
  isSmall,
  solvesOne,
} from '../support/agents/addedPrograms.ts';
import { agentBench, REAL_KEY, solve } from '../support/agents/agentBench.ts';
import { startFakeProvider } from '../support/agents/playedProvider.ts';
import { attemptsOf } from '../support/agents/programFaults.ts';
import { cli } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const ID = ADDED_ID;
const available = await dockerAvailable();

describe.skipIf(!available)('a program that its user added (needs Docker, npm and PyPI)', () => {
  // Larger ones: tests/long/addedPrograms.test.ts.
  test.for(ACP_PROGRAMS.filter(isSmall))(
    '$program solves an instance by the Agent Client Protocol',
    { timeout: 900_000 },
    async (one, context) => {
      const missing = await addedFromSource(one);
      if (missing) return context.skip(missing);
      await solvesOne(one, 'acp');
    },
  );

  test('a package of PyPI asks through the gateway, by a Python of its own', {
    timeout: 900_000,
  }, async (context) => {
    const source = 'pypi:httpie==3.2.4';
    const missing = await addedFromSource({ program: 'httpie', version: '3.2.4', source });
    if (missing) return context.skip(missing);
    await using provider = await startFakeProvider([]);
    const body = `model={{model}} messages:='[{"role": "user", "content": "How?"}]'`;
    const ask = `http --ignore-stdin --check-status --print=b POST "$OPENAI_BASE_URL/chat/completions" "Authorization: Bearer $OPENAI_API_KEY" ${body}`;
    const bench = agentBench({
      ...{ ids: [ID], url: provider.url, dialect: 'chat', grading: true },
      agent: { agent_class: 'command', program: 'httpie', command: `set -e\n${ask}\n${solve(ID)}` },
    });
    const done = await bench.run();
    expect(done.code, done.stderr).toBe(0);
    const [attempt] = attemptsOf(bench);
    expect(attempt, JSON.stringify(attempt)).toMatchObject({ exit_reason: 'submitted', steps: 1 });
    expect(JSON.parse(attempt!.error_evidence).output_end).toContain('"object":"chat.completion"');
    expect(bench.query('SELECT outcome FROM evaluations')).toEqual([{ outcome: 'resolved' }]);
    expect(JSON.stringify(provider.requests.map(({ headers }) => headers))).toContain(REAL_KEY);
    expect(attempt!.error_evidence).not.toContain(REAL_KEY);
  });

  /** An agent of the user's that is a line of shell, as long as `use` takes. */
  async function withOwn(script: string, use: (program: string) => Promise<void>): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'own-agent-'));
    mkdirSync(join(folder, 'bin'));
    writeFileSync(join(folder, 'bin', 'own-agent'), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, 'bin', 'own-agent'), 0o755);
    const name = `own-${randomBytes(4).toString('hex')}`;
    const added = await cli(['agents', 'add', name, folder]);
    expect(added.code, added.stderr).toBe(0);
    try {
      await use(name);
    } finally {
      const removed = await cli(['agents', 'remove', name]);
      expect(removed.code, removed.stderr).toBe(0);
    }
  }

  test('from a folder is on the PATH of its agent, reads only, and is gone when its patch is graded', async () => {
    const script = `set -e\n${solve(ID)}\n! touch /opt/swebatch-program/program/bin/x 2>/dev/null\ncommand -v own-agent`;
    await withOwn(script, async (program) => {
      await using provider = await startFakeProvider([]);
      const bench = agentBench({
        ...{ ids: [ID], url: provider.url, dialect: 'chat', grading: true },
        agent: { agent_class: 'command', program, command: 'own-agent {{task}}', model_optional: true },
      });
      const done = await bench.run();
      expect(done.code, done.stderr).toBe(0);
      const [attempt] = attemptsOf(bench);
      expect(attempt).toMatchObject({ exit_reason: 'submitted', steps: 0 });
      expect(JSON.parse(attempt!.error_evidence)).toMatchObject({
        ...{ exit_code: 0, output_end: '/opt/swebatch-program/program/bin/own-agent' },
      });
      expect(bench.query('SELECT outcome FROM evaluations')).toEqual([{ outcome: 'resolved' }]);
    });
  });

  test('that the memory limit kills says so, is counted, and is in the report', async () => {
    await withOwn('exec python3 -c "x = b\'x\' * (600 << 20)"', async (program) => {
      await using provider = await startFakeProvider([]);
      const bench = agentBench({
        ...{ ids: [ID], url: provider.url, dialect: 'chat', environment: { memory: '200m' } },
        // Asks nobody: what it left counts, whatever its exit code is.
        agent: { agent_class: 'command', program, command: 'own-agent; true', model_optional: true },
      });
      const done = await bench.run();
      expect(done.code, done.stderr).toBe(0);
      expect(bench.query('SELECT oom_kills FROM attempts')).toEqual([{ oom_kills: 1 }]);
      const shown = await cli(['show', bench.id, ID, '-o', bench.out]);
      expect(shown.stdout).toContain('the memory limit killed a process of it');
      const report = await cli(['report', bench.id, '-o', bench.out]);
      expect(report.stdout).toMatch(/memory\s+1 kill by the memory limit/);
    });
  });
});
