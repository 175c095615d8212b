// The real programs from npm, in containers without network, against providers of their dialects: they solve instances and never see the
// provider's key. What goes wrong around them is played with one of them here, and with each in tests/long. Claude Code is under commercial
// terms: SWEBATCH_TEST_CLAUDE_CODE=1 runs it too.
import { describe, expect, test } from 'vitest';
import { AGENTS, addedFromNpm, agentBench } from '../support/agents/agentBench.ts';
import { hasEquipment } from '../support/agents/programEquipment.ts';
import { outlastsStorm, outlivesRelay, solvesTwo, survivesKill } from '../support/agents/programFaults.ts';
import { dockerAvailable } from '../support/docker.ts';

const available = await dockerAvailable();
const codex = AGENTS.find(({ agent }) => agent === 'codex')!;

describe.skipIf(!available)('a real program (needs Docker and npm)', () => {
  test.for(AGENTS)(
    '$agent solves two instances over several turns, and finds no key, no proxy and no network',
    { timeout: 400_000 },
    async (one, context) => {
      const missing = await addedFromNpm(one);
      if (missing) return context.skip(missing);
      await solvesTwo(one);
    },
  );

  test.for(AGENTS)(
    '$agent gets instructions, a skill, a server of tools and a temperature of its arm',
    { timeout: 400_000 },
    async (one, context) => {
      const missing = await addedFromNpm(one);
      if (missing) return context.skip(missing);
      await hasEquipment(one);
    },
  );

  test('with a model of another protocol is refused before the run, and what would help is named', async (context) => {
    const missing = await addedFromNpm(codex);
    if (missing) return context.skip(missing);
    const bench = agentBench({
      ...{ ids: ['swebatch__tabular-23'], url: 'http://127.0.0.1:9', dialect: 'chat' },
      agent: { agent_class: 'codex' },
    });
    const { code, stderr } = await bench.run();
    expect(code, stderr).toBe(2);
    expect(stderr).toContain('codex@0.169.0 speaks responses, and the model is asked in chat');
    expect(stderr).toContain('or gateway.translate: true');
  });

  test.for([
    ['hears nothing of a storm of 429 and 529', outlastsStorm],
    ['works again at resume after kill -9 in the middle of a stream', survivesKill],
    ['is tried again after the death of its relay', outlivesRelay],
  ] as const)('%s', async ([, fault], context) => {
    const missing = await addedFromNpm(codex);
    if (missing) return context.skip(missing);
    await fault(codex);
  });
});
