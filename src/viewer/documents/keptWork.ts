/** Work that was captured when an attempt ended, and that no prediction has (run.patch). */

/** Null where there is none, and where something else than the patch was judged. */
export const keptWork = ({
  patch,
  captured,
  evaluations,
}: {
  readonly patch: string;
  readonly captured: string | null;
  readonly evaluations: readonly { readonly current: boolean; readonly outcome: string }[];
}): string | null => {
  const judged = evaluations.some(({ current, outcome }) => current && outcome !== 'empty_patch');
  return patch === '' && captured && !judged ? captured : null;
};

/** How it is called wherever it is shown. */
export const KEPT_WORK = 'captured when the attempt ended, not submitted';
