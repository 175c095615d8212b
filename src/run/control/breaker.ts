/**
 * The circuit breaker: a systemic failure pauses the run instead of burning through 500 instances. Pure: events in, decisions out.
 */
import type { ExitClass, ExitReason } from '../../outcome.ts';

interface BreakerConfig {
  /** The same error on this many trials in a row opens it; 0 turns this rule off. */
  readonly consecutive: number;
  /** Share of the last `window` endings that may be infra; 0 turns this rule off. */
  readonly fraction: number;
  readonly window: number;
  /** No non-empty patch among this many first finished trials pauses with a diagnosis; 0 turns this rule off. */
  readonly emptyPatches: number;
  /** Instances of the run; default: several. */
  readonly instances?: number;
}

export interface JudgedAttempt {
  readonly instanceId: string;
  readonly reason: ExitReason;
  readonly class: ExitClass;
  readonly message: string | null;
  readonly patchBytes: number;
  /** The request was rejected, and no call of the model had succeeded yet. */
  readonly beforeAnyAnswer?: boolean;
  /** The address of its model had no listener. */
  readonly unreachable?: boolean;
  /** A module of the user's threw, or returned what nobody can use. */
  readonly ofModule?: boolean;
  /** The arm of the request; arms are asked apart. */
  readonly arm?: string;
  readonly image?: string;
  /** The package that a probe looked for in the image and did not find. */
  readonly missingPackage?: string | null;
}

/** After this many instances in a wrong environment, the cause is the images or the configuration. */
const WRONG_ENVIRONMENTS = 3;

type Decision =
  | { do: 'go' }
  | { do: 'stop'; reason: string; as?: ExitReason }
  | { do: 'pause'; reason: string }
  | { do: 'resume'; reason: string };

interface Breaker {
  readonly state: 'closed' | 'open' | 'probing';
  note(ended: JudgedAttempt): Decision;
  /** One trial may start, to test whether the problem is over. */
  probe(): void;
}

/** Without digits and ids, which vary between instances, the message identifies the problem. */
export const fingerprint = (ended: Pick<JudgedAttempt, 'reason' | 'message'>): string =>
  `${ended.reason}: ${(ended.message ?? '')
    .toLowerCase()
    .replace(/[0-9a-f]{8,}/g, '#')
    .replace(/\d+/g, '#')
    .slice(0, 120)}`;

/** Gets every ending; returns a sentence once several instances miss a package that their image should have. */
function countWrongEnvironments(): (ended: JudgedAttempt) => string | null {
  const wrong = { ids: new Set<string>(), images: new Set<string>(), packages: new Set<string>() };
  const images = new Set<string>();
  return (ended) => {
    images.add(ended.image ?? '');
    if (!ended.missingPackage) return null;
    wrong.ids.add(ended.instanceId);
    wrong.images.add(ended.image ?? '');
    wrong.packages.add(`"${ended.missingPackage}"`);
    if (wrong.ids.size < WRONG_ENVIRONMENTS) return null;
    const name = `python package${wrong.packages.size > 1 ? 's' : ''} ${[...wrong.packages].join(', ')}`;
    return `${name} not importable in ${wrong.images.size}/${images.size} images`;
  };
}

/** One instance may be odd; two are the configuration. In a run of one there is no other to ask. */
const ALIKE = 2;

/** Gets ends that one instance may have caused; returns of how many instances they are, once it is clear that all would end so. */
function countAlike(instances = ALIKE): (ended: JudgedAttempt) => number | null {
  const prints = new Map<string, Set<string>>();
  return (ended) => {
    const print = `${ended.arm ?? ''} ${fingerprint(ended)}`;
    const ids = (prints.get(print) ?? new Set()).add(ended.instanceId);
    prints.set(print, ids);
    return ids.size < Math.min(ALIKE, instances) ? null : ids.size;
  };
}

function rejected(count: number, { message, reason }: JudgedAttempt): string {
  const whose = count > 1 ? `the first requests of ${count} instances` : 'the first request';
  return `${whose} ended alike, so every other would: ${message ?? reason}; change what it names under model, or at the server, then resume the run`;
}

/** Attempts in a row, also of one instance: no instance has anything to do with a server that nobody can reach. */
const UNREACHED = 2;

function countUnreached(consecutive: number): (ended: JudgedAttempt) => string | null {
  let inARow = 0;
  return ({ unreachable, reason, message }) => {
    inARow = unreachable ? inARow + 1 : 0;
    const gone = consecutive > 0 && inARow >= Math.min(UNREACHED, consecutive);
    return gone ? `the server of the model is gone: ${message ?? reason}` : null;
  };
}

const diagnoses = {
  malformed: (finished: number, id: string) =>
    `the first ${finished} finished instances all ended on malformed replies: prompt and agent.protocol may not fit together, or the model cannot follow them; look at one with "swebatch show RUN ${id}"`,
  noPatch: (finished: number, id: string) =>
    `none of the first ${finished} finished instances has a patch; look at one with "swebatch show RUN ${id}"`,
  alike: (count: number, { reason, message }: JudgedAttempt) =>
    `${count} instances in a row ended as ${reason}: ${message ?? 'no message'}`,
  tooMany: (share: number, window: number) =>
    `${Math.round(share * 100)} % of the last ${window} instances failed for reasons that are not the model's`,
};

export function createBreaker(config: BreakerConfig): Breaker {
  let state: Breaker['state'] = 'closed';
  let row: { print: string; ids: Set<string> } = { print: '', ids: new Set() };
  let last: boolean[] = [];
  let finished = 0;
  let nonEmpty = 0;
  let malformedOnly = 0;
  const wrongEnvironment = countWrongEnvironments();
  const alike = countAlike(config.instances);
  const unreached = countUnreached(config.consecutive);

  const open = (reason: string): Decision => {
    state = 'open';
    return { do: 'pause', reason };
  };

  return {
    get state() {
      return state;
    },
    probe() {
      if (state === 'open') state = 'probing';
    },
    note(ended) {
      const count = ended.ofModule || ended.beforeAnyAnswer ? alike(ended) : null;
      if (ended.class === 'config' && (!ended.ofModule || count !== null))
        return { do: 'stop', reason: ended.message ?? `every instance would end as ${ended.reason}` };
      if (ended.ofModule) return { do: 'go' };
      if (count !== null) return { do: 'stop', reason: rejected(count, ended), as: 'config_invalid' };
      if (ended.class === 'cancelled' || ended.class === 'not_run') return { do: 'go' };
      // While all instances end on malformed replies, the prompt and the protocol are the likely cause.
      const malformed = finished === malformedOnly && ended.reason === 'format_errors_exceeded';
      const bad = ended.class === 'infra' || (state !== 'closed' && malformed);
      const shared = unreached(ended) ?? wrongEnvironment(ended);
      if (state !== 'closed') {
        if (bad)
          return state === 'probing'
            ? open(`the probe failed too: ${ended.message ?? ended.reason}`)
            : { do: 'go' };
        state = 'closed';
        row = { print: '', ids: new Set() };
        last = [];
        return { do: 'resume', reason: `${ended.instanceId} ended well` };
      }
      if (shared) return open(shared);
      last = [...last, bad].slice(-config.window);
      if (!bad) {
        row = { print: '', ids: new Set() };
        finished += 1;
        if (ended.patchBytes > 0) nonEmpty += 1;
        if (malformed) malformedOnly += 1;
        if (config.consecutive > 0 && finished === config.consecutive && malformedOnly === finished)
          return open(diagnoses.malformed(finished, ended.instanceId));
        if (config.emptyPatches > 0 && finished === config.emptyPatches && nonEmpty === 0)
          return open(diagnoses.noPatch(finished, ended.instanceId));
        return { do: 'go' };
      }
      const print = fingerprint(ended);
      if (print !== row.print) row = { print, ids: new Set() };
      row.ids.add(ended.instanceId);
      if (config.consecutive > 0 && row.ids.size >= config.consecutive)
        return open(diagnoses.alike(row.ids.size, ended));
      const share = last.filter(Boolean).length / config.window;
      if (config.fraction > 0 && last.length >= config.window && share > config.fraction)
        return open(diagnoses.tooMany(share, config.window));
      return { do: 'go' };
    },
  };
}
