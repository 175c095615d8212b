// The reference models of ATIF, from the harbor package on PyPI: fetched once into the person's cache, without what harbor itself needs.
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const VERSION = '0.25.0';
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'swebatch', 'tests');

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
  const folder = join(CACHE, `harbor-${VERSION}`);
  try {
    if (!existsSync(folder)) await install(folder);
  } catch (error) {
    return `harbor ${VERSION} cannot be had from PyPI with python3 and pip: ${(error as Error).message.slice(-300)}`;
  }
  return {
    judge(documents) {
      const input = documents.map((document) => `${JSON.stringify(document)}\n`).join('');
      const { stdout, stderr } = spawnSync('python3', ['-c', CHECK], {
        ...{ input, encoding: 'utf8', timeout: 60_000, maxBuffer: 1 << 28 },
        env: { ...process.env, PYTHONPATH: folder },
      });
      if (stdout === '') throw new Error(`the models of harbor do not start: ${stderr}`);
      return stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Judgement);
    },
  };
}

async function install(folder: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const fresh = mkdtempSync(`${folder}-`);
  const pip = ['-m', 'pip', '--disable-pip-version-check', '--quiet'];
  try {
    // Its models need nothing but pydantic, and run on a Python that is older than the one harbor asks for.
    const any = ['--no-deps', '--ignore-requires-python', '--python-version', '3.13', '--only-binary=:all:'];
    await run('python3', [...pip, 'install', '--target', fresh, ...any, `harbor==${VERSION}`]);
    await run('python3', [...pip, 'install', '--target', fresh, 'pydantic>=2,<3']);
    renameSync(fresh, folder);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}
