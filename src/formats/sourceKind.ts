/**
 * What a file or folder of another tool is, told from its names and the beginnings of a few files. Only a guess that chooses a reader: the
 * reader judges what is really there. Pure.
 */

export const SOURCE_WORDS = {
  results_root: 'a results root of swebatch',
  harbor_job: 'a job folder of Harbor',
  inspect_log: 'a log of Inspect',
  inspect_logs: 'a folder of logs of Inspect',
  atif: 'trajectories in ATIF',
  leaderboard: 'an entry of the leaderboard',
  leaderboard_results: 'a results.json of the leaderboard',
  mini_swe_agent: 'a folder of mini-swe-agent',
  predictions: 'predictions',
  graded_predictions: "predictions with the harness's reports",
  instance_reports: 'instance reports of the harness',
  instance_report: 'an instance report of the harness',
  run_report: 'a run report of the harness',
  verdict_map: 'verdicts by instance (SWE-bench Pro)',
} as const;
export type SourceKind = keyof typeof SOURCE_WORDS;

export interface Listing {
  /** Last part of the path. */
  readonly name: string;
  /** Files below a folder, relative, some levels deep; null for a file. */
  readonly files: readonly string[] | null;
  /** The first bytes of a file below the folder, or of the file itself (''). */
  readonly head: (path: string) => string;
}

export const sourceKind = ({ name, files, head }: Listing): SourceKind | null =>
  files === null ? kindOfFile(name, head('')) : kindOfFolder(files, head);

const has = (text: string, ...keys: readonly string[]): boolean =>
  keys.every((key) => text.includes(`"${key}"`));

const RUN_REPORT_KEYS = ['resolved_ids', 'completed_ids', 'submitted_ids', 'total_instances'];
const RESOLVED_LIST = /"resolved"\s{0,100}:\s{0,100}\[/;
const RESOLVED_WORD = /"resolved"\s{0,100}:\s{0,100}(?:true|false)/;
const VERDICT_MAP = /^\s{0,100}\{\s{0,100}"[^"]{1,200}"\s{0,100}:\s{0,100}(?:true|false)/;
const LOG_OF_INSPECT = /"eval"\s{0,100}:\s{0,100}\{/;

function kindOfFile(name: string, head: string): SourceKind | null {
  if (name.endsWith('.eval')) return 'inspect_log';
  if (name.endsWith('.jsonl')) return 'predictions';
  if (head.includes('"ATIF-v')) return 'atif';
  if (LOG_OF_INSPECT.test(head) && has(head, 'task', 'model')) return 'inspect_log';
  if (RUN_REPORT_KEYS.some((key) => has(head, key))) return 'run_report';
  if (RESOLVED_LIST.test(head)) return 'leaderboard_results';
  if (name === 'report.json' && RESOLVED_WORD.test(head)) return 'instance_report';
  if (has(head, 'model_patch')) return 'predictions';
  return VERDICT_MAP.test(head) ? 'verdict_map' : null;
}

/** In the order in which they are looked for. */
export const PREDICTIONS = ['preds.json', 'all_preds.jsonl', 'predictions.jsonl'];

function kindOfFolder(files: readonly string[], head: Listing['head']): SourceKind | null {
  const top = new Set(files.filter((file) => !file.includes('/')));
  if (top.has('swebatch.db')) return 'results_root';
  if (top.has('result.json') && has(head('result.json'), 'n_total_trials')) return 'harbor_job';
  if ([...top].some((file) => file.endsWith('.eval'))) return 'inspect_logs';
  const json = [...top].filter((file) => file.endsWith('.json'));
  if (json.some((file) => /^\d{4}-\d\d-\d\dT/.test(file) && kindOfFile(file, head(file)) === 'inspect_log'))
    return 'inspect_logs';
  const results = ['results/results.json', 'results.json'].find((file) => files.includes(file));
  if (results !== undefined && RESOLVED_LIST.test(head(results))) return 'leaderboard';
  if (files.some((file) => file.endsWith('.traj.json'))) return 'mini_swe_agent';
  if (files.some((file) => file.endsWith('.atif.json'))) return 'atif';
  const predicted = PREDICTIONS.some((file) => top.has(file));
  if (files.some((file) => /\/(?:report\.json|run_instance\.log)$/.test(file)))
    return predicted ? 'graded_predictions' : 'instance_reports';
  if (predicted) return 'predictions';
  return json.some((file) => kindOfFile(file, head(file)) === 'run_report') ? 'run_report' : null;
}
