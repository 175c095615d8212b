// Harbor tasks of three steps on the base image of the tests, with the replies of a scripted model for each.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { sqlarUncompress } from '../../../src/store/longText.ts';
import { cli } from '../cli.ts';
import { docker } from '../docker.ts';
import { derivedImage } from '../dockerEnvironment.ts';
import { harborTask } from './harborTask.ts';
import { reply, SUBMIT } from './sixTasks.ts';

/** Stands in the tests of every step: no agent may find it, nor the tests of a step before. */
const HIDDEN = 'the-hidden-word-of-the-steps';
/** Prints a mark for every test or solution that can be seen in the container. */
export const SEARCH = `grep -rlI "${HIDDEN.slice(0, 10)}[-]hidden[-]word[-]of" / --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev 2>/dev/null | head -5; ls -d /tests /solution 2>/dev/null; ls -A /logs/verifier; echo searched`;

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

// What a run of tasks of several steps left in its record, and the end states that it kept.

interface Verdict {
  readonly instance_id: string;
  readonly outcome: string;
  readonly reward: number | null;
  readonly rewards: string | null;
  readonly resolved_strict: number | null;
  readonly error_message: string | null;
}
interface Attempt {
  readonly instance_id: string;
  readonly exit_reason: string;
  readonly steps: number;
  readonly notes: string;
  readonly work_image: string | null;
}

export function queryRun<Row>(out: string, sql: string): Row[] {
  const db = new Database(join(out, 'swebatch.db'), { readonly: true });
  db.function('sqlar_uncompress', sqlarUncompress);
  try {
    return db.prepare(sql).all() as Row[];
  } finally {
    db.close();
  }
}

export const verdictsIn = (out: string): Verdict[] =>
  queryRun(out, 'SELECT * FROM evaluations ORDER BY instance_id, id');

export const attemptsIn = (out: string): Attempt[] =>
  queryRun(
    out,
    `SELECT i.instance_id, a.* FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN instances i ON i.id = t.instance_pk
     ORDER BY i.instance_id, a.number`,
  );

export const keptImages = (attempts: readonly Pick<Attempt, 'work_image'>[]): string[] =>
  attempts.flatMap(({ work_image }) =>
    [...(work_image ?? '').matchAll(/swebatch\.internal\/work:\w+/g)].map(String),
  );

export const isThere = async (image: string): Promise<boolean> =>
  docker
    .getImage(image)
    .inspect()
    .then(
      () => true,
      () => false,
    );

export async function removeKept(out: string): Promise<void> {
  for (const image of keptImages(attemptsIn(out)))
    await docker
      .getImage(image)
      .remove()
      .catch(() => undefined);
}

export const runSteps = (out: string, { tasks, model }: { tasks: string; model: string }, env = {}) =>
  cli(
    [
      ...['run', '--subset', tasks, '--model', `scripted:${model}`, '-o', out, '--run-id', 'r1', '-w', '2'],
      ...['--evaluate', '-c', 'agent.step_limit=20'],
    ],
    { env },
  );
