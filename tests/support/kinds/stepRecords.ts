// What a run of tasks of several steps left in its record, and the end states that it kept.
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { cli } from '../cli.ts';
import { docker } from '../docker.ts';

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
