/** `swebatch doctor`: can this machine run? Each failure comes with its fix. */

import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { bad, type Finding, good } from '../../base/finding.ts';
import { inert } from '../../base/text/inert.ts';
import { plural } from '../../base/text/numbers.ts';
import { environmentFindings } from '../../environment/environments.ts';
import { engineClient } from '../../environment/places/chosenEngine.ts';
import { type EngineInfo, engineInfo } from '../../environment/places/engineInfo.ts';
import { requireEngine } from '../../run/places/engines.ts';
import { endpointFindings } from '../../run/plan/armChecks.ts';
import { engineFindings, limitFindings, refusalFindings } from '../../run/plan/engineFit.ts';
import { copyFindings } from '../../run/plan/localCopies.ts';
import { checkedPlan, needsEngine, platformAsked } from '../../run/plan/preflight.ts';
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
    const resolved = resolvedConfig(args);
    const findings = [
      nodeVersion(),
      ...(await docker('problem' in resolved ? undefined : resolved)),
      ...('problem' in resolved ? [] : await environmentFindings(resolved.arms)),
      disk('disk', root, 'free some space, or choose another results root with -o'),
      database(root),
      ...('problem' in resolved ? [resolved.problem] : await configuration(resolved, args)),
      ...('problem' in resolved || resolved.dataset.subset === undefined
        ? []
        : await tasks(root, args, resolved)),
    ];
    const lines = findings.map(
      (f) => `${f.ok ? 'ok  ' : 'FAIL'} ${f.what}: ${inert(f.detail)}${f.fix ? `\n     fix: ${f.fix}` : ''}`,
    );
    printResult(args.json, findings, () => lines.join('\n'));
    return findings.every((f) => f.ok) ? EXIT.done : EXIT.usage;
  },
});

const nodeVersion = (): Finding => good('Node', process.versions.node);

/** The engine, where the configuration needs one or cannot be read. */
async function docker(resolved?: ResolvedConfig): Promise<Finding[]> {
  if (resolved && !needsEngine(resolved)) return [good('Docker', 'this configuration needs none')];
  const engine = await ask();
  const wanted = resolved ? platformAsked(resolved) : { platform: undefined, emulation: true };
  return [
    ...engineState(engine, resolved),
    ...engineFindings(engine, ENGINE, wanted),
    ...(resolved && engine.ok ? await refusalFindings(engineClient(), engine, ENGINE, resolved) : []),
  ];
}

const ENGINE = 'Docker';

function engineState(engine: EngineInfo, resolved?: ResolvedConfig): Finding[] {
  if (!engine.ok) return [bad(ENGINE, engine.message, engineFix(engine.message))];
  const gib = (engine.memoryBytes / 2 ** 30).toFixed(0);
  const name = engine.name === 'Podman' ? `Podman ${engine.rootless ? '(rootless) ' : ''}` : '';
  const facts = `${name}${engine.version}, ${engine.storageDriver}, cgroup v${engine.cgroupVersion}, ${engine.cpus} cpus, ${gib} GiB, ${engine.architecture}`;
  const found = [
    good(ENGINE, facts),
    ...(resolved ? limitFindings(engine, `limits of ${ENGINE}`, resolved) : []),
  ];
  // A remote engine's disk cannot be seen from here, and has the same paths.
  const { socketPath } = requireEngine(process.env).docker.modem as { socketPath?: string };
  if (!socketPath || !existsSync(engine.rootDir)) return found;
  const fix =
    'remove images ("swebatch images gc", "docker image prune"), or give Docker a larger disk (data-root)';
  return [...found, disk(`disk of ${ENGINE}`, engine.rootDir, fix)];
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

async function ask(): Promise<EngineInfo> {
  try {
    return await engineInfo(engineClient(), { again: true });
  } catch (error) {
    return { ok: false, message: (error as Error).message };
  }
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
async function tasks(root: string, args: DoctorArgs, resolved: ResolvedConfig): Promise<Finding[]> {
  try {
    const { request } = await plan(
      { results: root, ...optionsOf(args) },
      { ...thisProcess(), tell: () => {} },
    );
    const graded = request.grading.enabled ? ', which can all be graded' : '';
    const copies =
      needsEngine(resolved) && (await ask()).ok
        ? await copyFindings(engineClient(), `images of ${ENGINE}`, request, platformAsked(resolved))
        : [];
    return [
      good('dataset', `${plural(request.selected.length, 'task')} of ${request.dataset.source}${graded}`),
      ...copies,
    ];
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const { next } = error;
    const fix = next ? nextStepText(next) : 'correct the dataset, its split or its selection';
    return [bad('dataset', error.message, fix)];
  }
}

function resolvedConfig(args: DoctorArgs): ResolvedConfig | { problem: Finding } {
  try {
    return resolveConfig(optionsOf(args), thisProcess());
  } catch (error) {
    return { problem: bad('configuration', (error as Error).message, 'correct what is named above') };
  }
}

async function configuration(resolved: ResolvedConfig, given: DoctorArgs): Promise<Finding[]> {
  const { arms, run, warnings } = resolved;
  if (given.config === undefined && given.model === undefined)
    return [
      good(
        'model',
        'none named; with -c FILE and -m MODEL, doctor checks the key, the price and the configuration too',
      ),
    ];
  const { findings, wrong, missing } = await checkedPlan(resolved, thisProcess());
  const asks = wrong.length + missing.length === 0;
  const env = { ...process.env, ...resolved.keys };
  return [
    good('configuration', `${arms.length} arm(s), ${run.workers} slot(s)`),
    ...warnings.map((warning) => good('configuration', warning)),
    ...findings,
    ...(asks ? await endpointFindings(arms, env, given.online) : []),
  ];
}
