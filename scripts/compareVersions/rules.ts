// What two runs of one version never have in common. Everything else is compared byte for byte.

/** Both versions read one record; each imported its own, so moments differ; each ran its own, so durations differ as well. */
export type Origin = 'one record' | 'own import' | 'own run';
const ORIGINS: readonly Origin[] = ['one record', 'own import', 'own run'];

interface Rule {
  /** For the reader of the table. */
  readonly what: string;
  /** From which origin on. */
  readonly from: Origin;
  readonly pattern: RegExp;
  readonly by: string;
}

export const RULES: readonly Rule[] = [
  {
    what: 'the commit and the version of swebatch itself',
    from: 'one record',
    pattern:
      /(\\*"?(?:commit|swebatch_version|swebatch_commit|program_version)\\*"?: ?)(\\*"[^"\\]*\\*"|null)/g,
    by: '$1<version>',
  },
  {
    what: 'uncommitted changes of the checkout',
    from: 'one record',
    pattern: /(\\*"(?:dirty|diff_sha256)\\*": ?)(?:true|false|null|\\*"[0-9a-f]{64}\\*")/g,
    by: '$1<checkout>',
  },
  {
    what: 'what has come since the first version: model.drop_params, and what caching saved',
    from: 'one record',
    pattern:
      /\n? *\\*"drop_params\\*": ?(?:true|false),|\n *"cache_saved": (?:null|\{[^}]*\}),|\| saved by cache \|.*\n|<tr><th scope="row">saved by cache<\/th><td>[^<]*<\/td><\/tr>/g,
    by: '',
  },
  {
    what: 'what has come since: dollars beside nano-dollars',
    from: 'one record',
    pattern: /,\n *"\w*usd": (?:null|[\d.e+-]+)/g,
    by: '',
  },
  {
    what: 'when a baseline was set and a page was made',
    from: 'one record',
    pattern: /(?<="?(?:set_at|madeAt)\\*": ?\\*"|^default\t\w+\t)[^"\n]+/gm,
    by: '<moment>',
  },
  {
    what: 'own imports and runs: the moment of anything',
    from: 'own import',
    pattern: /\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d(?:[.,-]\d+)?Z?/g,
    by: '<moment>',
  },
  {
    what: 'own runs: seconds since 1970',
    from: 'own run',
    pattern: /(?<=\\*"timestamp\\*":? ?)\d{10}\.?\d*/g,
    by: '<moment>',
  },
  {
    what: 'own runs: how long anything took: keys that end in _ms, _s or Ms, and what programs say of themselves',
    from: 'own run',
    pattern:
      /(?<=\b\w+(?:_m?s|Ms)\\*"?:? ?)-?\d[\d.]*|(?<=\bin )\d+\.\d+ ?s\b|(?<=runtime: )[\d.]+|0m\d+\.\d+s/g,
    by: '<duration>',
  },
  {
    what: 'own runs: the length of an output that says how long something took',
    from: 'own run',
    pattern: /(?<=^commands \{.*<duration>.*"total_bytes":)\d+/gm,
    by: '<length>',
  },
  {
    what: 'own runs: the names of containers',
    from: 'own run',
    pattern: /(?<=ontainer (?:for \S+ (?:created|started): )?)[0-9a-f]{61,64}|(?<="container_id":")[^"]+/g,
    by: '<container>',
  },
  {
    what: 'own runs: addresses in memory, and how much disk is free',
    from: 'own run',
    pattern: /\b0x7f[0-9a-f]{10}\b|(?<="free_bytes": )\d+/g,
    by: '<number>',
  },
  {
    what: 'own runs: in which order images were ready, and how steps and gradings fell between each other, so their numbers and the order of rows',
    from: 'own run',
    pattern:
      /(?<="(?:id|attempt_id|final_attempt_id|evaluation_id|message_id|slot)":|\\"(?:trialId|attemptId|slot)\\+":|^(?:events|phases) \{(?:"attempt_id":(?:\d+|<number>),)?"seq":)\d+/gm,
    by: '<number>',
  },
  {
    what: 'own runs: whether a container was ready before its slot was, so how its start is divided into phases',
    from: 'own run',
    pattern: /^phases \{.*"name":"(?:pull|seal|start|verify)".*\n/gm,
    by: '',
  },
  {
    what: 'own runs: where a replay met another duration in the output of a test',
    from: 'own run',
    pattern:
      /(?<=environment answered differently than in the recording: )differs at character \d+.*?(?=\\"\}"\}|$)/gm,
    by: '<durations>',
  },
];

/** Reports rank trials and phases by time; those of one record are compared. */
export const isSkipped = (path: string, origin: Origin): boolean =>
  origin === 'own run' && /\/summary\.(?:md|html|json)$/.test(path);

export function normalised(text: string, origin: Origin): string {
  const rules = RULES.filter((rule) => ORIGINS.indexOf(origin) >= ORIGINS.indexOf(rule.from));
  return rules.reduce((result, { pattern, by }) => result.replace(pattern, by), text);
}
