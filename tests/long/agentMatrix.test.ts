// What can go wrong around a program that others wrote, with each of the real ones. SWEBATCH_TEST_CLAUDE_CODE=1 adds Claude Code.
import { describe, test } from 'vitest';
import { DIALECT_NAMES } from '../../src/model/dialects/dialects.ts';
import { addedFromNpm, agentsTested } from '../support/agents/agentBench.ts';
import {
  endsAtBudget,
  endsAtItsTime,
  endsAtSteps,
  floods,
  forgesKeys,
  outlastsStorm,
  outlivesRelay,
  readsLateAnswers,
  solvesByTranslation,
  solvesTwo,
  survivesKill,
} from '../support/agents/programFaults.ts';
import { asksServer } from '../support/agents/programServers.ts';
import { dockerAvailable } from '../support/docker.ts';

const available = await dockerAvailable();

describe.skipIf(!available).each(agentsTested())('$agent (needs Docker and npm)', (one) => {
  test.each([
    ['solves two instances', solvesTwo],
    ['is stopped by the budget of the run', endsAtBudget],
    ['hears nothing of a storm of 429 and 529', outlastsStorm],
    ['reads an answer that begins late, and gets over streams that break', readsLateAnswers],
    ['works again at resume after kill -9 in the middle of a stream', survivesKill],
    ['is tried again after the death of its relay', outlivesRelay],
    ['is ended at its limit of steps, whatever its model asks for', endsAtSteps],
    ['is killed at its time with all that it started', endsAtItsTime],
    ['goes on after a command that writes 1 GB, or is ended in it', floods],
    ['asks an MCP server of the image, anew in each step of its task', asksServer],
    ['cannot ask with a key that it made up, or with that of another attempt', forgesKeys],
  ])('%s', async (_name, play) => {
    const missing = await addedFromNpm(one);
    if (missing) throw new Error(missing);
    await play(one);
  });

  test.each(DIALECT_NAMES.filter((name) => name !== one.dialect))(
    'solves an instance with a model that speaks %s, by translation',
    async (dialect) => {
      const missing = await addedFromNpm(one);
      if (missing) throw new Error(missing);
      await solvesByTranslation(one, dialect);
    },
  );
});
