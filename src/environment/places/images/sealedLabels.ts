/** What the derived image of a sealed history says of itself, so that it is found again and goes with its source. */
export const SEALED_LABELS = {
  version: 'swebatch.sealed.version',
  source: 'swebatch.sealed.source',
  sourceDigest: 'swebatch.sealed.digest',
  fingerprint: 'swebatch.sealed.fingerprint',
  tree: 'swebatch.sealed.tree',
  folder: 'swebatch.sealed.folder',
  notes: 'swebatch.sealed.notes',
} as const;
