// The reference models of ATIF, from the harbor package on PyPI: fetched once into the person's cache, without what harbor itself needs.
import { spawnSync } from 'node:child_process';
import { fromPypi } from './fromPypi.ts';

const VERSION = '0.25.0';

const CHECK = `
import json, sys
from harbor.models.trajectories import Trajectory
for line in sys.stdin:
    try:
        kept = Trajectory.model_validate(json.loads(line)).to_json_dict()
        print(json.dumps({"kept": kept}))
    except Exception as error:
        print(json.dumps({"error": str(error)}))
`;

interface Judgement {
  /** What the models read; absent where they refuse it. */
  readonly kept?: Readonly<Record<string, unknown>>;
  readonly error?: string;
}

export interface HarborModels {
  judge(documents: readonly unknown[]): Judgement[];
}

/** Why they cannot be had, or the models. */
export async function harborModels(): Promise<HarborModels | string> {
  // Its models need nothing but pydantic, and run on a Python that is older than the one harbor asks for.
  const any = ['--no-deps', '--ignore-requires-python', '--python-version', '3.13', '--only-binary=:all:'];
  const found = await fromPypi('harbor', VERSION, [[...any, `harbor==${VERSION}`], ['pydantic>=2,<3']]);
  if ('why' in found) return found.why;
  return {
    judge(documents) {
      const input = documents.map((document) => `${JSON.stringify(document)}\n`).join('');
      const { stdout, stderr } = spawnSync('python3', ['-c', CHECK], {
        ...{ input, encoding: 'utf8', timeout: 60_000, maxBuffer: 1 << 28 },
        env: { ...process.env, PYTHONPATH: found.folder },
      });
      if (stdout === '') throw new Error(`the models of harbor do not start: ${stderr}`);
      return stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Judgement);
    },
  };
}
