/**
 * The filter box: `django class:limit steps>50 cost>=0.5 -flag:any "two words"`. A word is looked for in the text of a row,
 * any other part compares one field. A minus negates a part. All parts must hold.
 */

export type FieldValue = string | number | null | undefined | readonly string[];
/** Reads a field by name; a Map, so that `constructor:x` is an unknown field and not an accident. */
export type Fields<Row> = ReadonlyMap<string, (row: Row) => FieldValue>;

interface Filter<Row> {
  readonly test: (row: Row) => boolean;
  /** The parts that cannot be understood, explained to the person who typed them. */
  readonly problems: readonly string[];
}

const PART = /(-?)(?:([A-Za-z_]+)(>=|<=|!=|[:=<>]))?("[^"]*"?|\S+)/g;

export function compileFilter<Row>(
  text: string,
  fields: Fields<Row>,
  words: (row: Row) => string,
): Filter<Row> {
  const problems: string[] = [];
  const tests: ((row: Row) => boolean)[] = [];
  for (const [, minus, name, operator, quoted] of text.matchAll(PART)) {
    const value = quoted!.replaceAll('"', '');
    const word = value.toLowerCase();
    const test =
      name === undefined
        ? (row: Row) => words(row).toLowerCase().includes(word)
        : fieldTest(fields, name, operator!, value);
    if (typeof test === 'string') problems.push(test);
    else tests.push(minus === '-' ? (row) => !test(row) : test);
  }
  return { test: (row) => tests.every((test) => test(row)), problems };
}

function fieldTest<Row>(
  fields: Fields<Row>,
  name: string,
  operator: string,
  value: string,
): ((row: Row) => boolean) | string {
  const read = fields.get(name.toLowerCase());
  if (!read) return `no field "${name}"; there are ${[...fields.keys()].join(', ')}`;
  const inOrder = ORDERS.get(operator);
  if (inOrder) {
    const wanted = numberOf(value);
    if (wanted === undefined) return `"${name}${operator}" needs a number, not "${value}"`;
    return (row) => {
      const found = read(row);
      return typeof found === 'number' && inOrder(found, wanted);
    };
  }
  const match = matcher(value, operator === ':');
  return (row) => match(read(row)) === (operator !== '!=');
}

/** 90s, 5m, 2h and 1.5k are numbers too. */
function numberOf(text: string): number | undefined {
  const found = /^(-?\d+(?:\.\d+)?)(s|m|h|k|M)?$/.exec(text);
  if (!found) return undefined;
  const unit = { s: 1, m: 60, h: 3600, k: 1e3, M: 1e6 }[found[2] ?? 's'] ?? 1;
  return Number(found[1]) * unit;
}

const ORDERS: ReadonlyMap<string, (found: number, wanted: number) => boolean> = new Map([
  ['>', (found, wanted) => found > wanted],
  ['<', (found, wanted) => found < wanted],
  ['>=', (found, wanted) => found >= wanted],
  ['<=', (found, wanted) => found <= wanted],
]);

/** `any` and `none` ask whether there is a value; `a|b` is either; `:` looks inside, `=` wants the whole. */
function matcher(value: string, inside: boolean): (found: FieldValue) => boolean {
  if (value === 'any') return (found) => !isEmpty(found);
  if (value === 'none') return isEmpty;
  const wanted = value.toLowerCase().split('|');
  const one = (text: string) => {
    const found = text.toLowerCase();
    return wanted.some((part) => (inside ? found.includes(part) : found === part));
  };
  return (found) => {
    if (found === null || found === undefined) return false;
    if (typeof found === 'number') return wanted.some((part) => numberOf(part) === found);
    return typeof found === 'string' ? one(found) : found.some(one);
  };
}

const isEmpty = (found: FieldValue): boolean =>
  found === null || found === undefined || found === '' || (Array.isArray(found) && found.length === 0);
