// Harbor tasks of three steps on the base image of the tests, with the replies of a scripted model for each.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { derivedImage } from '../dockerEnvironment.ts';
import { harborTask } from './harborTask.ts';
import { reply, SUBMIT } from './sixTasks.ts';

/** Stands in the tests of every step: no agent may find it, nor the tests of a step before. */
const HIDDEN = 'the-hidden-word-of-the-steps';
/** Prints a mark for every test or solution that can be seen in the container. */
export const SEARCH = `grep -rlI "${HIDDEN.slice(0, 10)}[-]hidden[-]word[-]of" / --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev 2>/dev/null | head -5; ls -d /tests /solution /logs/verifier 2>/dev/null; echo searched`;

interface Step {
  readonly toml?: string;
  /** Writes a reward; default: 1. */
  readonly test?: string;
  /** What the model runs, beside the search. */
  readonly commands?: readonly string[];
  readonly files?: Readonly<Record<string, string>>;
}

export const SCORE = (value: number | string): string => `echo ${value} > /logs/verifier/reward.txt`;
export const NAMES = ['first', 'second', 'third'] as const;

export async function steppedTask(
  dir: string,
  id: string,
  steps: readonly Step[],
  head = '',
): Promise<{ tasks: string; model: string }> {
  const image = await derivedImage('mkdir -p /work');
  const [tasks, model] = [join(dir, 'tasks'), join(dir, 'model')];
  mkdirSync(model, { recursive: true });
  const files: Record<string, string> = {};
  const tables = steps.map(({ toml = '', test = SCORE(1), files: own = {} }, i) => {
    const path = `steps/${NAMES[i]}`;
    files[`${path}/instruction.md`] = `Do the ${NAMES[i]} part.\n`;
    files[`${path}/tests/test.sh`] = `#!/bin/bash\n# ${HIDDEN}\n${test}\n`;
    for (const [name, text] of Object.entries(own)) files[`${path}/${name}`] = text;
    return `[[steps]]\nname = "${NAMES[i]}"\n${toml}\n`;
  });
  harborTask(tasks, id, {
    'task.toml': `${head}\n[environment]\ndocker_image = "${image}"\nworkdir = "/work"\nnetwork_mode = "no-network"\n${tables.join('')}`,
    'instruction.md': null,
    'tests/test.sh': null,
    'tests/shared.txt': `${HIDDEN} shared\n`,
    'solution/solve.sh': null,
    ...files,
  });
  const replies = steps.flatMap(({ commands = [] }) => [...commands, SUBMIT].map(reply));
  writeFileSync(join(model, `${id}.json`), JSON.stringify({ replies }));
  return { tasks, model };
}
