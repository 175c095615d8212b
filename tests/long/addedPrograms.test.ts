// The programs of docs/agents.md that CI does not add, in containers without network: 100 MB each and more, minutes to add.
import { expect, test } from 'vitest';
import {
  ADDED_PROGRAMS,
  addedFromSource,
  SMALL_PROGRAMS,
  solvesOne,
} from '../support/agents/addedPrograms.ts';

test.each(ADDED_PROGRAMS.filter((one) => !SMALL_PROGRAMS.includes(one)))(
  '$program solves an instance through the gateway',
  async (one) => {
    expect(await addedFromSource(one)).toBe(null);
    await solvesOne(one);
  },
);
