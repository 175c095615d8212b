/**
 * History after the base commit is removed from a repository, with a proof that it is gone. The scripts beside this file do the work; their
 * output is read here. An engine decides whether this happens once an image or in every environment.
 */
import { EnvironmentError, type HistoryState, type StartRequest } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { Channel } from '../exec/channel.ts';
import type { ScriptRunner } from '../patch/capture.ts';
import { shellScript } from '../shellScript.ts';

const SEAL_HISTORY = shellScript('sealHistory.sh', import.meta.url);
const VERIFY_HISTORY = shellScript('verifyHistory.sh', import.meta.url);
const SEAL_TIMEOUT_S = 1800;
const VERIFY_TIMEOUT_S = 120;
/** 128 + SIGKILL: of a script, or of a program that it ran. */
const KILLED = 137;

interface HistoryVerdict {
  readonly state: 'sealed' | 'absent' | 'failed';
  /** The fingerprint, or the reason. */
  readonly text: string;
  readonly notes: readonly string[];
}

function parseVerdict(output: string, code: number): HistoryVerdict {
  const lines = output.split('\n');
  const notes = lines.filter((l) => l.startsWith('note ')).map((l) => l.slice(5));
  for (const line of lines) {
    const match = /^(sealed|absent|failed) (.+)$/.exec(line);
    if (match) return { state: match[1] as HistoryVerdict['state'], text: match[2]!, notes };
  }
  // Without bash there is no script, and without git nothing that it could find.
  if (code === 127) return { state: 'absent', text: 'the image has no bash', notes };
  // A kill says nothing of the image: another try may have an answer.
  if (code === KILLED)
    throw new EnvironmentError(
      'start_failed',
      `what looks at the history of the repository was killed; environment.memory may be too small for it: ${output.slice(-300).trim()}`,
    );
  return { state: 'failed', text: `the script ended with rc ${code}: ${output.slice(-300).trim()}`, notes };
}

type WorkTree = Pick<EnvironmentConfig, 'cwd'>;
/** Undefined where the container's user is root, absent where nobody can be root. */
type AsRoot = () => Promise<Pick<Channel, 'harness'> | undefined>;

/**
 * Seals as the container's user, so that the user's files stay so; as root where the repository is somebody else's, as in an image that ends with
 * `USER dev` and has a work tree of root. `baseCommit`: what HEAD must fit; '' where that is checked later.
 */
export async function sealHistory(
  run: ScriptRunner,
  { cwd }: WorkTree,
  baseCommit = '',
  asRoot?: AsRoot,
): Promise<HistoryVerdict> {
  const sealedBy = async (by: ScriptRunner) => {
    const done = await by(SEAL_HISTORY, { timeoutS: SEAL_TIMEOUT_S, env: { W: cwd, BASE: baseCommit } });
    return parseVerdict(done.output, done.code);
  };
  const verdict = await sealedBy(run);
  if (verdict.state !== 'failed') return verdict;
  const root = await asRoot?.();
  return root ? sealedBy(root.harness) : verdict;
}

/** Seals in the container of the agent, where no image of the sealed state serves others. */
export async function sealInside(
  run: ScriptRunner,
  config: EnvironmentConfig,
  request: StartRequest,
  notes: string[],
  asRoot?: AsRoot,
): Promise<HistoryState> {
  const sealed = await sealHistory(run, config, request.baseCommit, asRoot);
  notes.push(...sealed.notes);
  if (sealed.state === 'absent') {
    notes.push(`history absent: ${sealed.text}`);
    return 'absent';
  }
  const verified =
    sealed.state === 'sealed' ? await verifySealed(run, config, sealed.text, request.baseCommit) : undefined;
  const reason = verified ? verified.reason : sealed.text;
  if (reason === undefined) return 'sealed';
  notes.push(`history failed: ${reason}`);
  refuseUnlessAllowed(config, request, reason);
  return 'failed';
}

/** Is this the sealed state, and does it fit the instance? undefined when it is; else the reason. */
export async function verifySealed(
  run: ScriptRunner,
  { cwd }: WorkTree,
  fingerprint: string,
  baseCommit: string | undefined,
): Promise<{ reason: string | undefined; notes: readonly string[] }> {
  const env = { W: cwd, BASE: baseCommit ?? '' };
  const done = await run(VERIFY_HISTORY, { timeoutS: VERIFY_TIMEOUT_S, env });
  const verdict = parseVerdict(done.output, done.code);
  if (verdict.state !== 'sealed') return { reason: verdict.text, notes: verdict.notes };
  if (verdict.text !== fingerprint)
    return { reason: 'the repository differs from the sealed one', notes: verdict.notes };
  return { reason: undefined, notes: verdict.notes };
}

export function refuseUnlessAllowed(
  config: Pick<EnvironmentConfig, 'allow_leaky'>,
  { instanceId }: Pick<StartRequest, 'instanceId'>,
  reason: string,
): void {
  if (config.allow_leaky) return;
  throw new EnvironmentError(
    'history_unsealed',
    `the history of ${instanceId} could not be sealed: ${reason}. Fix the image, or set environment.allow_leaky (the run is then not submittable)`,
    { evidence: { reason } },
  );
}
