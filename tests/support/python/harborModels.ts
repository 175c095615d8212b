// The models of the harbor package on PyPI, of ATIF and of jobs: fetched once into the person's cache, without what harbor itself needs.
import { spawnSync } from 'node:child_process';
import { fromPypi } from './fromPypi.ts';

const VERSION = '0.26.0';

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

/** What harbor computes of the trials of a job folder, as its Job does; and what the folder states. Words that this Python may lack come from an older name. */
const COMPUTE = `
import json, pathlib, sys, typing, typing_extensions
typing.TypedDict, typing.override = typing_extensions.TypedDict, typing_extensions.override
from harbor.models.job.result import JobResult, JobStats
from harbor.models.trial.result import TrialResult
from harbor.utils.pass_at_k import compute_pass_at_k_by_evals
folder = pathlib.Path(sys.stdin.read())
job = JobResult.model_validate_json((folder / "result.json").read_text())
trials = [TrialResult.model_validate_json(path.read_text()) for path in sorted(folder.glob("*/result.json"))]
stats = JobStats.from_trial_results(trials, n_total_trials=job.n_total_trials)
key = lambda t: JobStats.format_agent_evals_key(t.agent_info.name, t.agent_info.model_info.name, t.source)
for name, of in stats.evals.items():
    valid = [next(iter(t.verifier_result.rewards.values())) for t in trials if key(t) == name and t.reward_valid]
    of.metrics = [{"mean": sum(valid) / len(valid)}] if valid else []
for name, passed in compute_pass_at_k_by_evals(trials).items():
    stats.evals[name].pass_at_k = passed
stats = JobStats.model_validate_json(stats.model_dump_json())
print(json.dumps({"computed": stats.model_dump(mode="json"), "stated": job.stats.model_dump(mode="json"),
    "trials": [{"name": t.trial_name, "valid": t.reward_valid, "policies": [vars(e.policy) for e in t.recorded_exceptions()]} for t in trials]}))
`;

export interface ComputedJob {
  readonly computed: unknown;
  readonly stated: unknown;
  readonly trials: readonly {
    readonly name: string;
    readonly valid: boolean;
    readonly policies: unknown[];
  }[];
}

interface Judgement {
  /** What the models read; absent where they refuse it. */
  readonly kept?: Readonly<Record<string, unknown>>;
  readonly error?: string;
}

export interface HarborModels {
  judge(documents: readonly unknown[]): Judgement[];
  /** Throws where its models refuse a file. */
  computeJob(folder: string): ComputedJob;
}

/** Why they cannot be had, or the models. */
export async function harborModels(): Promise<HarborModels | string> {
  // Its models need nothing but pydantic, and run on a Python that is older than the one harbor asks for.
  const any = ['--no-deps', '--ignore-requires-python', '--python-version', '3.13', '--only-binary=:all:'];
  const found = await fromPypi('harbor', VERSION, [
    [...any, `harbor==${VERSION}`],
    ['pydantic>=2,<3', 'toml', 'shortuuid', 'packaging'],
  ]);
  if ('why' in found) return found.why;
  const python = (script: string, input: string): string => {
    const { stdout, stderr } = spawnSync('python3', ['-c', script], {
      ...{ input, encoding: 'utf8', timeout: 60_000, maxBuffer: 1 << 28 },
      env: { ...process.env, PYTHONPATH: found.folder },
    });
    if (stdout === '') throw new Error(`the models of harbor do not start: ${stderr}`);
    return stdout.trim();
  };
  return {
    judge: (documents) =>
      python(CHECK, documents.map((document) => `${JSON.stringify(document)}\n`).join(''))
        .split('\n')
        .map((line) => JSON.parse(line) as Judgement),
    computeJob: (folder) => JSON.parse(python(COMPUTE, folder)) as ComputedJob,
  };
}
