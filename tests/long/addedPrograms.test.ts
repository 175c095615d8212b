// mini-swe-agent as PyPI has it, in a container without network: 282 MB with its Python and with litellm, which takes minutes to add.
import { expect, test } from 'vitest';
import { ADDED_PROGRAMS, addedFromSource, solvesOne } from '../support/agents/addedPrograms.ts';

test.each(ADDED_PROGRAMS.filter(({ source }) => source.startsWith('pypi:')))(
  '$program solves an instance through the gateway',
  async (one) => {
    expect(await addedFromSource(one)).toBe(null);
    await solvesOne(one);
  },
);
