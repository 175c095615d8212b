// Nights of a model whose true skill is known: what a gate and a report say about them can be held against the truth.

import { compareSides } from '../../src/report/compare/compareSides.ts';
import { type Side, scoreOnly } from '../../src/report/compare/side.ts';
import { candidateOfSide } from '../../src/report/gate/gate.ts';
import type { Candidate } from '../../src/report/gate/rules.ts';

export type Random = () => number;

/** Chances of the instances to be resolved. */
export type Skills = readonly number[];

/**
 * Populations with the same share of pairs that disagree by chance (the mean of 2p(1 - p)): `mixed` are instances that are always or never
 * resolved and some of any chance; `coins` the same with chances of a half; `steady` are all alike and mostly resolved.
 */
export type Population = 'mixed' | 'coins' | 'steady';

export function skillsOf(population: Population, n: number, disagreement: number, random: Random): Skills {
  const sure = () => (random() < 0.65 ? 1 : 0);
  const share = (population === 'mixed' ? 3 : 2) * disagreement;
  return Array.from({ length: n }, () => {
    if (population === 'steady') return (1 + Math.sqrt(1 - 2 * disagreement)) / 2;
    if (random() >= share) return sure();
    return population === 'mixed' ? random() : 0.5;
  });
}

/** A loss of so much of the mean: whole instances that break, or every instance a little. */
export type Loss = 'broken' | 'faded';

export function after(skills: Skills, loss: Loss, drop: number, random: Random): Skills {
  const part = Math.min(1, drop / (skills.reduce((s, p) => s + p, 0) / skills.length));
  return skills.map((p) => (loss === 'faded' ? p * (1 - part) : random() < part ? 0 : p));
}

export const idOf = (i: number): string => `a__a-${String(i).padStart(3, '0')}`;
export const skillOf = (skills: Skills, id: string): number => skills[Number(id.slice(5))]!;

export function nightOf(label: string, skills: Skills, random: Random, epochs = 1): Side {
  const results = skills.map((p, i) =>
    scoreOnly(
      idOf(i),
      Array.from({ length: epochs }, () => random() < p),
      null,
    ),
  );
  return {
    ...{ label, kind: 'run', model: 'm', epochs, open: null, partial: true, warnings: [] },
    results: new Map(results.map((r) => [r.instanceId, r])),
    facts: new Map() as unknown as Side['facts'],
  };
}

/** Trials that infrastructure lost, with a chance for those that failed and one for those that were resolved. */
export function lostToInfra(
  side: Side,
  [failed, resolved]: readonly [failed: number, resolved: number],
  random: Random,
): Side {
  const results = [...side.results.values()].map((result) => {
    const kept = result.scores.filter((score) => random() >= (score ? resolved : failed));
    const infra = result.scores.length - kept.length;
    return { ...scoreOnly(result.instanceId, kept, kept.length === 0 ? 'infra' : null), infra };
  });
  return { ...side, results: new Map(results.map((r) => [r.instanceId, r])) };
}

export const compareNights = (a: Side, b: Side) => compareSides(a, b, { test: 'exact', seed: 1, draws: 2 });
export const candidateFrom = (b: Side): Candidate => candidateOfSide(b);

/** What measuring these instances again `k` times gives. */
export const measuredAgain = (
  ids: readonly string[],
  skills: Skills,
  k: number,
  random: Random,
): Map<string, boolean[]> =>
  new Map(ids.map((id) => [id, Array.from({ length: k }, () => random() < skillOf(skills, id))]));
