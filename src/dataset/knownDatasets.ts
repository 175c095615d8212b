/** The datasets that have a short name, and the repositories of the Hugging Face hub they live in, current name first. */

interface KnownDataset {
  readonly repos: readonly [string, ...string[]];
  readonly says: string;
}

export const KNOWN_DATASETS = {
  full: {
    repos: ['SWE-bench/SWE-bench', 'princeton-nlp/SWE-bench'],
    says: 'SWE-bench: 2294 test instances from 12 Python repositories, 225 dev',
  },
  verified: {
    repos: ['SWE-bench/SWE-bench_Verified', 'princeton-nlp/SWE-bench_Verified'],
    says: '500 test instances checked by people, with a difficulty',
  },
  lite: {
    repos: ['SWE-bench/SWE-bench_Lite', 'princeton-nlp/SWE-bench_Lite'],
    says: '300 test instances, 23 dev',
  },
  multilingual: {
    repos: ['SWE-bench/SWE-bench_Multilingual', 'swe-bench/SWE-Bench_Multilingual'],
    says: '300 test instances from 41 repositories in 9 languages',
  },
  multimodal: {
    repos: ['SWE-bench/SWE-bench_Multimodal', 'princeton-nlp/SWE-bench_Multimodal'],
    says: 'JavaScript instances with images, 102 dev',
  },
  rebench: {
    repos: ['nebius/SWE-rebench'],
    says: 'instances collected automatically, with their own images',
  },
} as const satisfies Record<string, KnownDataset>;

export type DatasetAlias = keyof typeof KNOWN_DATASETS;
export const DATASET_ALIASES = Object.keys(KNOWN_DATASETS) as DatasetAlias[];

const HUB_ID = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/;

/** Repositories a source may mean: those of an alias, or a hub id itself with its siblings under other owners. */
export function hubReposOf(source: string): readonly string[] {
  if (Object.hasOwn(KNOWN_DATASETS, source)) return KNOWN_DATASETS[source as DatasetAlias].repos;
  if (!HUB_ID.test(source)) return [];
  const same = (repo: string) => repo.toLowerCase() === source.toLowerCase();
  const known = Object.values(KNOWN_DATASETS).find(({ repos }) => repos.some(same));
  return [source, ...(known?.repos.filter((repo) => repo !== source) ?? [])];
}
