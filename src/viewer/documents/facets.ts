/** Filters that need no syntax: for each facet the values that a person chose. A row passes when every facet has one of them. */

export interface Facet<Row> {
  /** Also its name in the address. */
  readonly id: string;
  readonly label: string;
  /** Several where a row has several, such as its flags. */
  readonly values: (row: Row) => readonly string[];
}

export type Chosen = ReadonlyMap<string, ReadonlySet<string>>;

/** A bar parts values in the address, so one inside of a value is written otherwise. */
const escaped = (value: string): string => value.replace(/[%|]/g, (sign) => encodeURIComponent(sign));
const unescaped = (value: string): string => value.replaceAll('%7C', '|').replaceAll('%25', '%');

export const writeChosen = (values: Iterable<string>): string => [...values].map(escaped).join('|');

export function readChosen<Row>(
  facets: readonly Facet<Row>[],
  query: { get(name: string): string | null },
): Chosen {
  return new Map(
    facets.flatMap(({ id }) => {
      const written = query.get(id);
      return written ? [[id, new Set(written.split('|').map(unescaped))] as const] : [];
    }),
  );
}

export function facetTest<Row>(facets: readonly Facet<Row>[], chosen: Chosen): (row: Row) => boolean {
  const asked = facets.flatMap((facet) => {
    const wanted = chosen.get(facet.id);
    return wanted ? [{ facet, wanted }] : [];
  });
  return (row) => asked.every(({ facet, wanted }) => facet.values(row).some((value) => wanted.has(value)));
}

interface FacetCount {
  readonly value: string;
  readonly n: number;
}

/**
 * For each facet how many of the rows each value would leave, given what the other facets ask. Every value of `all` stays in the list, at 0
 * where a typed filter left none of its rows, and so does a chosen one: what somebody can press does not vanish while they type.
 */
export function facetCounts<Row>(
  rows: readonly Row[],
  facets: readonly Facet<Row>[],
  chosen: Chosen,
  all: readonly Row[] = rows,
): ReadonlyMap<string, readonly FacetCount[]> {
  return new Map(
    facets.map((facet) => {
      const passes = facetTest(
        facets.filter((other) => other !== facet),
        chosen,
      );
      const values = [...all.flatMap(facet.values), ...(chosen.get(facet.id) ?? [])];
      const counts = new Map(values.map((value) => [value, 0]));
      for (const row of rows.filter(passes))
        for (const value of facet.values(row)) counts.set(value, (counts.get(value) ?? 0) + 1);
      const sorted = [...counts].map(([value, n]) => ({ value, n }));
      return [facet.id, sorted.sort((a, b) => byText(a.value, b.value))];
    }),
  );
}

let collator: Intl.Collator | undefined;
/** As people order names with numbers in them. A collator is made once: to make one takes longer than a thousand comparisons. */
export function byText(a: string, b: string): number {
  collator ??= new Intl.Collator('en', { numeric: true });
  return collator.compare(a, b);
}
