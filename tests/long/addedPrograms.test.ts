// The programs of docs/agents.md that CI does not add, in containers without network: 100 MB each and more, minutes to add.
import { expect, test } from 'vitest';
import {
  ACP_PROGRAMS,
  ADDED_PROGRAMS,
  addedFromSource,
  isSmall,
  solvesOne,
} from '../support/agents/addedPrograms.ts';

test.each(ADDED_PROGRAMS.filter((one) => !isSmall(one)))(
  '$program solves an instance through the gateway',
  async (one) => {
    expect(await addedFromSource(one)).toBe(null);
    await solvesOne(one);
  },
);

test.each(ACP_PROGRAMS.filter((one) => !isSmall(one)))(
  '$program solves an instance by the Agent Client Protocol',
  async (one) => {
    expect(await addedFromSource(one)).toBe(null);
    await solvesOne(one, 'acp');
  },
);
