/**
 * An engine of the configuration that did not answer when the run began is checked before its first trial, as the others were before
 * anything was paid: one of another processor or with a wrong clock gets none.
 */
import type { EngineInfo } from '../../environment/places/engineInfo.ts';
import type { EnginePool } from '../../environment/places/enginePool.ts';
import { engineFindings, type PlatformAsked } from '../plan/engineFit.ts';

export interface AdmissionPorts {
  readonly pool: EnginePool;
  readonly ask: (host: string) => Promise<EngineInfo>;
  readonly platform: PlatformAsked;
  readonly note: (text: string) => void;
}

export type Admission = (host: string) => Promise<void>;

/** Enough to know the processor of the others. */
const COMPARED = 3;

/** Refuses an engine that does not fit. One that does not answer is asked again for the next trial. */
export function createAdmission({ pool, ask, platform, note }: AdmissionPorts): Admission {
  const told = new Map<string, Promise<EngineInfo>>();
  const checked = new Map<string, Promise<void>>();
  const admitted = new Set<string>();
  const infoOf = async (host: string) => {
    const known = told.get(host) ?? ask(host);
    told.set(host, known);
    const info = await known;
    if (!info.ok) told.delete(host);
    return info;
  };
  const check = async (host: string) => {
    const own = await infoOf(host);
    if (!own.ok) return void checked.delete(host);
    // The first are compared with each other, in one order, so that all come to the same answer.
    const others = admitted.size > 0 ? [...admitted].slice(0, COMPARED) : pool.alive();
    const asked = await Promise.all(
      [...new Set([...others, host])].map(async (what) => ({ what, engine: await infoOf(what) })),
    );
    const problems = engineFindings(asked, platform).filter(({ what }) => what === host);
    if (problems.length === 0) return void admitted.add(host);
    pool.refuse(host);
    const text = problems.map(({ detail, fix }) => `${detail}; ${fix}`).join('; ');
    note(`engine ${host} is refused, and gets no trials: ${text}`);
  };
  return (host) => {
    const known = checked.get(host) ?? check(host);
    checked.set(host, known);
    return known;
  };
}
