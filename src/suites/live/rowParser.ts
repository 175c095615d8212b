/**
 * A log parser that a row brings as Python source. It is code of others, so it runs in a container of its own without network, never on
 * this machine and never beside the work that it judges.
 */
import { z } from 'zod';
import { type Environment, EnvironmentError } from '../../environment/environment.ts';
import type { GradeRequest } from '../../grading/gradingFrame.ts';

const FOLDER = '/swebatch-parser';
/** Asked for where the image of the row has no Python. */
export const PYTHON_IMAGE = 'python:3.12-slim';
const TIMEOUT_S = 300;

const RUNNER = `import json
namespace = {}
with open('${FOLDER}/parser.py', encoding='utf-8') as source:
    exec(compile(source.read(), 'parser.py', 'exec'), namespace)
with open('${FOLDER}/log.txt', encoding='utf-8', errors='replace', newline='') as log:
    statuses = namespace['parser'](log.read())
with open('${FOLDER}/statuses.json', 'w', encoding='utf-8') as out:
    json.dump(statuses or {}, out)
`;

export type RowParsed =
  | { readonly ok: true; readonly statuses: ReadonlyMap<string, string> }
  | { readonly ok: false; readonly outcome: 'invalid' | 'infra' | 'ungradable'; readonly message: string };

const statusesSchema = z.record(z.string(), z.string());

async function parseIn(
  environment: Environment,
  source: string,
  log: string,
  signal?: AbortSignal,
): Promise<RowParsed> {
  const at = { cwd: '/', timeoutS: TIMEOUT_S, signal };
  await environment.execute(`mkdir -p ${FOLDER}`, at);
  await environment.putFile(`${FOLDER}/parser.py`, source);
  await environment.putFile(`${FOLDER}/log.txt`, log);
  await environment.putFile(`${FOLDER}/run.py`, RUNNER);
  const ran = await environment.execute(`python3 ${FOLDER}/run.py`, at);
  const lost = (message: string): RowParsed => ({ ok: false, outcome: 'invalid', message });
  if (ran.timedOut) return lost(`its log parser did not end within ${TIMEOUT_S} s`);
  if (ran.exitCode !== 0)
    return lost(`its log parser gave up: ${ran.output.trim().split('\n').at(-1)?.slice(0, 300) ?? ''}`);
  const written = await environment.execute(`cat ${FOLDER}/statuses.json`, at);
  try {
    return { ok: true, statuses: new Map(Object.entries(statusesSchema.parse(JSON.parse(written.output)))) };
  } catch {
    return lost('its log parser did not give a status for each test');
  }
}

/** In a fresh container of the row's image, or of an image of Python where that has none. */
export async function runRowParser(
  source: string,
  log: string,
  where: { readonly instanceId: string; readonly image: string },
  { factory, owner, signal }: GradeRequest,
): Promise<RowParsed> {
  for (const image of [where.image, PYTHON_IMAGE]) {
    const start = {
      instanceId: where.instanceId,
      image,
      owner,
      signal,
      container: { network: 'none' },
    } as const;
    try {
      const environment = await factory.start(start);
      try {
        const found = await environment.execute('command -v python3', { cwd: '/', timeoutS: 60, signal });
        if (found.exitCode === 0) return await parseIn(environment, source, log, signal);
      } finally {
        await environment.close();
      }
    } catch (error) {
      if (!(error instanceof EnvironmentError) || image !== PYTHON_IMAGE) throw error;
      return {
        ok: false,
        outcome: 'ungradable',
        message: `its log parser is Python, its image has none, and ${PYTHON_IMAGE} is not on the engine`,
      };
    }
  }
  return {
    ok: false,
    outcome: 'ungradable',
    message: `its log parser is Python, and ${PYTHON_IMAGE} has none`,
  };
}
