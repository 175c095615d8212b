/** `swebatch doctor`: can this machine run? Each failure comes with its fix. */

import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { bad, type Finding, good } from '../../base/finding.ts';
import { inert } from '../../base/text/inert.ts';
import { plural } from '../../base/text/numbers.ts';
import { engineClient } from '../../environment/places/chosenEngine.ts';
import type { EngineInfo } from '../../environment/places/engineInfo.ts';
import { isLocal } from '../../environment/places/imageService.ts';
import type { Caller } from '../../run/caller.ts';
import { findingsOf } from '../../run/plan/checks.ts';
import { answerOfEngine, type PlanFacts, planFacts, withEngineFacts } from '../../run/plan/planFacts.ts';
import { type ResolvedConfig, resolveConfig } from '../../run/plan/resolveConfig.ts';
import { plan } from '../../run/plan.ts';
import { databasePath, resultsRoot } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { openStore } from '../../store/open.ts';
import { filledText, filledTexts } from '../flags/checks.ts';
import { evaluateFlag } from '../flags/runFlags.ts';
import { type Args, defineVerb, flags, json, output, toggle } from '../flags/verb.ts';
import { EXIT, nextStepText, printResult } from '../terminal/context.ts';
import { thisProcess } from '../terminal/thisProcess.ts';

const doctorFlags = flags({
  output,
  config: filledTexts('c', 'file, or key.path=value'),
  model: filledTexts('m', 'model id'),
  subset: filledText('dataset of the run: whether its tasks can run and be graded here'),
  split: filledText('split of the dataset'),
  evaluate: evaluateFlag,
  online: toggle(
    "ask the makers' own endpoints too for their models, which costs nothing; others are asked always",
  ),
  json,
});

type DoctorArgs = Args<typeof doctorFlags>;

export const doctorVerb = defineVerb({
  name: 'doctor',
  describe: 'check Node, Docker, disk, key and configuration, and name the fix for each failure',
  flags: doctorFlags,
  examples: [['$0 doctor -c swebench.yaml -m gpt-5.4', 'with the configuration of a run']],
  async run(args) {
    const root = resultsRoot(args.output);
    const caller = thisProcess();
    const resolved = resolvedConfig(args, caller);
    const facts =
      'problem' in resolved
        ? undefined
        : await withEngineFacts(
            { ...planFacts(resolved, caller), engineName: ENGINE, online: args.online },
            true,
          );
    const findings = [
      nodeVersion(),
      ...engineState(facts ? facts.engine : await answerOfEngine({ again: true })),
      ...(facts ? await findingsOf('places', 'doctor', facts) : []),
      disk('disk', root, 'free some space, or choose another results root with -o'),
      database(root),
      ...('problem' in resolved ? [resolved.problem] : []),
      ...(facts ? await configuration(facts, args) : []),
      ...(facts?.dataset.subset === undefined ? [] : await tasks(root, args, facts)),
    ];
    const lines = findings.map(
      (f) => `${f.ok ? 'ok  ' : 'FAIL'} ${f.what}: ${inert(f.detail)}${f.fix ? `\n     fix: ${f.fix}` : ''}`,
    );
    printResult(args.json, findings, () => lines.join('\n'));
    return findings.every((f) => f.ok) ? EXIT.done : EXIT.usage;
  },
});

const nodeVersion = (): Finding => good('Node', process.versions.node);

const ENGINE = 'Docker';

function engineState(engine: EngineInfo | undefined): Finding[] {
  if (!engine) return [good(ENGINE, 'this configuration needs none')];
  if (!engine.ok) return [bad(ENGINE, engine.message, engineFix(engine.message))];
  const gib = (engine.memoryBytes / 2 ** 30).toFixed(0);
  const name = engine.name === 'Podman' ? `Podman ${engine.rootless ? '(rootless) ' : ''}` : '';
  const facts = `${name}${engine.version}, ${engine.storageDriver}, cgroup v${engine.cgroupVersion}, ${engine.cpus} cpus, ${gib} GiB, ${engine.architecture}`;
  // A remote engine's disk cannot be seen from here, and has the same paths.
  if (!isLocal(engineClient()) || !existsSync(engine.rootDir)) return [good(ENGINE, facts)];
  const fix =
    'remove images ("swebatch images gc", "docker image prune"), or give Docker a larger disk (data-root)';
  return [good(ENGINE, facts), disk(`disk of ${ENGINE}`, engine.rootDir, fix)];
}

function engineFix(message: string): string {
  if (/EACCES|permission denied/i.test(message))
    return 'give your user access to the socket (sudo usermod -aG docker $USER, then log in again)';
  if (message.startsWith('DOCKER_HOST')) return 'correct DOCKER_HOST, or unset it';
  if (message.includes('context')) return 'choose another context, or set DOCKER_HOST';
  if (message.includes('no answer within'))
    return 'the engine hangs: look at its log, and restart it when nothing runs on it (systemctl restart docker)';
  return 'start the engine (systemctl start docker, or dockerd &); in a checkout on Debian or Ubuntu as root "npm run setup" installs and starts it';
}

const LOW_DISK = 5 * 2 ** 30;

function disk(what: string, root: string, fix: string): Finding {
  let folder = root;
  while (!existsSync(folder)) folder = dirname(folder);
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  const detail = `${(free / 2 ** 30).toFixed(1)} GiB free for ${root}`;
  return free < LOW_DISK ? bad(what, detail, fix) : good(what, detail);
}

function database(root: string): Finding {
  const path = databasePath(root);
  if (!existsSync(path)) return good('results', `${root} holds no runs yet`);
  try {
    openStore(path).close();
    return good('results', `${path} is intact`);
  } catch (error) {
    return bad(
      'results',
      (error as Error).message,
      'restore a backup, or choose another results root with -o',
    );
  }
}

const optionsOf = ({ config, model, subset, split, evaluate }: DoctorArgs) => ({
  config,
  models: model,
  dataset: { subset, split },
  settings: { grading: { enabled: evaluate } },
});

/** The dataset as a run would take it, and the copies of its images on the engine. */
async function tasks(root: string, args: DoctorArgs, facts: PlanFacts): Promise<Finding[]> {
  try {
    const { request } = await plan(
      { results: root, ...optionsOf(args) },
      { ...thisProcess(), tell: () => {} },
    );
    const { grading, selected, dataset } = request;
    const graded = grading.enabled ? ', which can all be graded' : '';
    return [
      good('dataset', `${plural(selected.length, 'task')} of ${dataset.source}${graded}`),
      ...(await findingsOf('tasks', 'doctor', { ...facts, selected })),
    ];
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const { next } = error;
    const fix = next ? nextStepText(next) : 'correct the dataset, its split or its selection';
    return [bad('dataset', error.message, fix)];
  }
}

function resolvedConfig(args: DoctorArgs, caller: Caller): ResolvedConfig | { problem: Finding } {
  try {
    return resolveConfig(optionsOf(args), caller);
  } catch (error) {
    return { problem: bad('configuration', (error as Error).message, 'correct what is named above') };
  }
}

async function configuration(
  facts: PlanFacts & Pick<ResolvedConfig, 'warnings'>,
  given: DoctorArgs,
): Promise<Finding[]> {
  if (given.config === undefined && given.model === undefined)
    return [
      good(
        'model',
        'none named; with -c FILE and -m MODEL, doctor checks the key, the price and the configuration too',
      ),
    ];
  const findings = await findingsOf('configuration', 'doctor', facts);
  return [
    good('configuration', `${facts.arms.length} arm(s), ${facts.run.workers} slot(s)`),
    ...facts.warnings.map((warning) => good('configuration', warning)),
    ...findings,
    ...(findings.every(({ ok }) => ok) ? await findingsOf('endpoints', 'doctor', facts) : []),
  ];
}
