/** Which patch a prediction carries and what state it is in. Pure. */
import { isUtf8 } from 'node:buffer';
import { sha256 } from '../../base/sha256.ts';
import type { CapturedPatch } from '../../environment/environment.ts';
import type { PatchSource, PatchState } from '../../outcome.ts';

export type PatchPolicy = 'submitted' | 'captured' | 'submitted-else-captured';

export interface PatchFacts {
  readonly modelPatch: string;
  readonly sha256: string;
  readonly source: PatchSource;
  readonly state: PatchState;
  /** Sentences for people. */
  readonly notes: readonly string[];
}

/** `submitted` is null when nothing was submitted; a submission of nothing is an empty array. */
export function choosePatch(
  policy: PatchPolicy,
  submitted: Uint8Array | null,
  captured: CapturedPatch | null,
): PatchFacts {
  const hasSubmitted = submitted !== null && submitted.length > 0;
  const hasCaptured = captured !== null && captured.patch.length > 0;
  const wanted =
    policy === 'submitted'
      ? submitted
      : policy === 'captured'
        ? (captured?.patch ?? null)
        : hasSubmitted
          ? submitted
          : (captured?.patch ?? null);
  const modelPatch = wanted === null ? '' : Buffer.from(wanted).toString('utf8');
  const source: PatchSource = hasSubmitted ? 'submitted' : hasCaptured ? 'captured_at_exit' : 'none';
  // JSON cannot hold such bytes, so the prediction differs from the patch. The record keeps the bytes.
  const changed = wanted !== null && !isUtf8(wanted);
  const state = stateOf(source, submitted, captured);
  return {
    modelPatch,
    sha256: sha256(modelPatch),
    source,
    state: changed && state === 'ok' ? 'invalid' : state,
    notes: changed
      ? ['the patch is not UTF-8: predictions cannot hold it unchanged, the record keeps its bytes']
      : [],
  };
}

function stateOf(
  source: PatchSource,
  submitted: Uint8Array | null,
  captured: CapturedPatch | null,
): PatchState {
  if (source === 'none')
    return captured?.state === 'oversized' || captured?.state === 'invalid' ? captured.state : 'empty';
  if (source === 'captured_at_exit') return captured!.state;
  return looksLikePatch(submitted!) ? 'ok' : 'invalid';
}

/** A cheap check: a submission without a diff header cannot apply anywhere. */
const looksLikePatch = (bytes: Uint8Array): boolean =>
  /^(diff --git |--- |Index: )/m.test(Buffer.from(bytes).toString('latin1'));
