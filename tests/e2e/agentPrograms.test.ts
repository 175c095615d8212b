// The real programs from npm, in containers without network, against providers of their dialects: they solve instances, end at limits and
// never see the provider's key. Claude Code is under commercial terms: SWEBATCH_TEST_CLAUDE_CODE=1 runs it too.
import { describe, expect, test } from 'vitest';
import { AGENTS, addedFromNpm, agentBench, REAL_KEY, solve } from '../support/agents/agentBench.ts';
import { startFakeProvider } from '../support/agents/playedProvider.ts';
import { dockerAvailable } from '../support/docker.ts';

const available = await dockerAvailable();
const tested = AGENTS.filter(
  ({ agent }) => agent !== 'claude-code' || process.env.SWEBATCH_TEST_CLAUDE_CODE === '1',
);
const ID = 'swebatch__tabular-23';
/** The key in pieces, because the command itself would be found. */
const LOOK = `grep -rlsE "${REAL_KEY.slice(0, 6)}[-]?${REAL_KEY.slice(6)}" /proc/[0-9]*/environ /proc/[0-9]*/cmdline /opt/swebatch-agent /var/tmp /tmp /root /etc /run; env | grep -i proxy; ls /sys/class/net; echo looked`;

const attempt =
  'SELECT exit_reason, exit_class, patch_source, steps, error_evidence, notes FROM attempts ORDER BY id';
interface Attempt {
  readonly exit_reason: string;
  readonly exit_class: string;
  readonly patch_source: string;
  readonly steps: number;
  readonly error_evidence: string;
}

describe.skipIf(!available).each(tested)('$agent (needs Docker and npm)', (one) => {
  const { agent, version, dialect, runs } = one;

  test('solves an instance over several turns, and finds no key, no proxy and no network', async (context) => {
    const missing = await addedFromNpm(one);
    if (missing) return context.skip(missing);
    const turns = [runs(LOOK), runs(solve(ID)), runs('git diff --stat')];
    const provider = await startFakeProvider([...turns, { say: 'It is done.' }]);
    await using _ = provider;
    const agentClass = { agent_class: agent, wall_time_limit_seconds: 120 };
    const bench = agentBench({ ids: [ID], url: provider.url, dialect, agent: agentClass, grading: true });
    const done = await bench.run();
    expect(done.code, done.stderr).toBe(0);
    const [ended] = bench.query<Attempt>(attempt);
    expect(ended).toMatchObject({
      exit_reason: 'submitted',
      exit_class: 'agent',
      patch_source: 'captured_at_exit',
    });
    expect(JSON.parse(ended!.error_evidence)).toMatchObject({ exit_code: 0 });
    expect(bench.query('SELECT outcome FROM evaluations')).toEqual([{ outcome: 'resolved' }]);
    const [{ calls, unpaid }] = bench.query<{ calls: number; unpaid: number }>(
      'SELECT count(*) AS calls, sum(cost_nano IS NULL) AS unpaid FROM model_calls',
    ) as [{ calls: number; unpaid: number }];
    expect(calls).toBe(provider.requests.length);
    expect(unpaid).toBe(0);
    const commands = bench.query<{ command: string; output: Buffer }>(
      'SELECT command, output FROM commands ORDER BY id',
    );
    expect(commands.map(({ command }) => command)).toEqual([LOOK, solve(ID), 'git diff --stat']);
    const looked = commands[0]!.output.toString();
    expect(looked).toMatch(/(^|\s)lo\nlooked/);
    expect(looked).not.toMatch(/proxy|environ|\/tmp\/|eth0/);
    // The provider got its key, the program another one.
    expect(JSON.stringify(provider.requests[0]!.headers)).toContain(REAL_KEY);
    expect(JSON.stringify(provider.requests.map(({ body }) => body))).not.toContain(REAL_KEY);
    expect(bench.query<{ config: string }>('SELECT config FROM arms')[0]!.config).toContain(
      `${agent}@${version}`,
    );
  }, 240_000);
});
