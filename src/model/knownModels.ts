/** Facts about models beside their prices: the limits of prompts and answers (models.json, made by scripts/modelTable.py). */
import table from './models.json' with { type: 'json' };

export interface KnownModel {
  /** The name as the table spells it. */
  readonly name: string;
  readonly maker: string;
  /** Tokens that a prompt may have. */
  readonly context: number | null;
  /** Tokens of the longest answer. */
  readonly output: number | null;
  readonly reasoning: boolean;
  /** Words for how much it thinks; null where the table does not say. */
  readonly efforts: readonly string[] | null;
  /** The effort when none is named. */
  readonly defaultEffort: string | null;
  /** Claude that decides itself how long it thinks, and refuses a budget. */
  readonly adaptive: boolean;
  /** The model refuses temperature and top_p. */
  readonly fixedSampling: boolean;
  /** The day after which the maker serves it no longer. */
  readonly gone: string | null;
}

interface Row {
  readonly context?: number;
  readonly output?: number;
  readonly reasoning?: boolean;
  readonly efforts?: readonly string[];
  readonly defaultEffort?: string;
  readonly adaptive?: boolean;
  readonly fixedSampling?: boolean;
  readonly gone?: string;
}

const { source: _source, ...byMaker } = table as unknown as Record<string, Record<string, Row>>;

const MAKERS: readonly string[] = Object.keys(byMaker);

function find(maker: string, name: string): KnownModel | null {
  const rows = byMaker[maker];
  const row = rows && Object.hasOwn(rows, name) ? rows[name] : undefined;
  if (!row) return null;
  const { context = null, output = null, gone = null, efforts = null, defaultEffort = null } = row;
  return {
    name,
    maker,
    context,
    output,
    gone,
    efforts,
    defaultEffort,
    reasoning: row.reasoning === true,
    adaptive: row.adaptive === true,
    fixedSampling: row.fixedSampling === true,
  };
}

/** A date or "latest" at the end names one build of a model: `-20250929`, `-2025-08-07`, `@20250929`, `-latest`. */
const BUILD = /(?:[-@]\d{8}|-\d{4}-\d\d-\d\d|[-:]latest)$/;

/** Bedrock's spelling: the region and the maker in front, its own version behind. */
const atBedrock = (name: string): string =>
  name.replace(/^(?:[a-z-]+\.)?anthropic\./, '').replace(/-v\d+(?::\d+)?$/, '');

/** `name` as people write it, with or without a provider in front: `anthropic/claude-opus-4-5`, `gpt-5.1`. null when nobody here knows it. */
export function knownModel(name: string): KnownModel | null {
  const parts = name.split('/');
  const last = parts.at(-1) ?? '';
  const makers = parts.length > 1 && Object.hasOwn(byMaker, parts[0]!) ? [parts[0]!] : MAKERS;
  const plain = atBedrock(last);
  for (const spelling of [last, plain, plain.replace(BUILD, '')])
    for (const maker of makers) {
      const found = find(maker, spelling);
      if (found) return found;
    }
  return null;
}
