/** Filters without a syntax: what is chosen as chips, and for each facet a list of its values with counts. */
import { useMemo } from 'react';
import {
  type Chosen,
  type Facet,
  type FacetCount,
  facetCounts,
  readChosen,
  writeChosen,
} from '../../documents/facets.ts';
import { setQuery, useRoute } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { integer, words } from '../text/numbers.ts';

export function useChosen<Row>(facets: readonly Facet<Row>[]): Chosen {
  const { query } = useRoute();
  return useMemo(() => readChosen(facets, query), [facets, query]);
}

const toggle = (id: string, chosen: Chosen, value: string): void => {
  const next = new Set(chosen.get(id));
  if (!next.delete(value)) next.add(value);
  setQuery({ [id]: writeChosen(next) });
};

/** Takes away everything that narrows a table. */
export const clearFilters = (facets: readonly { readonly id: string }[]): void =>
  setQuery({ f: undefined, ...Object.fromEntries(facets.map(({ id }) => [id, undefined])) });

interface ChipsProps<Row> {
  /** All rows of the table, and of them those that what is typed leaves. */
  readonly all: readonly Row[];
  readonly rows: readonly Row[];
  readonly facets: readonly Facet<Row>[];
  readonly chosen: Chosen;
}

export function FilterChips<Row>({ all, rows, facets, chosen }: ChipsProps<Row>) {
  const counts = useMemo(() => facetCounts(rows, facets, chosen, all), [all, rows, facets, chosen]);
  const valuesOf = ({ id }: Facet<Row>) => counts.get(id) ?? [];
  // A facet of which all rows have the same value narrows nothing; a flag is a value that most rows do not have.
  const useful = facets.filter(
    (facet) => valuesOf(facet).length > (facet.id === 'flags' ? 0 : 1) || chosen.has(facet.id),
  );
  // Its few values are what people ask for most; of any other facet there may be hundreds.
  const open = facets[0];
  return (
    <fieldset className="chips">
      <legend className="hide">Narrow by</legend>
      {useful.map((facet) =>
        facet === open ? (
          <Toggles key={facet.id} facet={facet} values={valuesOf(facet)} chosen={chosen} />
        ) : (
          <Menu key={facet.id} facet={facet} values={valuesOf(facet)} chosen={chosen} />
        ),
      )}
      {[...chosen].flatMap(([id, values]) =>
        id === open?.id
          ? []
          : [...values].map((value) => (
              <button
                key={`${id} ${value}`}
                type="button"
                className="chip on"
                title="show the others again"
                onClick={() => toggle(id, chosen, value)}
              >
                {plain(words(value))}
                <span aria-hidden="true"> ×</span>
              </button>
            )),
      )}
    </fieldset>
  );
}

interface FacetProps {
  readonly facet: { readonly id: string; readonly label: string };
  readonly values: readonly FacetCount[];
  readonly chosen: Chosen;
}

/** A facet that stands open: each value is a button. */
function Toggles({ facet, values, chosen }: FacetProps) {
  return values.map(({ value, n }) => {
    const isOn = chosen.get(facet.id)?.has(value) ?? false;
    return (
      <button
        key={value}
        type="button"
        className={`chip tone-${value.replace(/[^a-z_]/g, '')}${isOn ? ' on' : ''}`}
        aria-pressed={isOn}
        onClick={() => toggle(facet.id, chosen, value)}
      >
        {plain(words(value))} <span className="n">{integer(n)}</span>
      </button>
    );
  });
}

function Menu({ facet, values, chosen }: FacetProps) {
  const own = chosen.get(facet.id);
  return (
    <details className="menu" name="facets">
      <summary className={own ? 'chip on' : 'chip'}>{facet.label}</summary>
      <fieldset>
        <legend className="hide">{facet.label}</legend>
        {values.length === 0 ? <p className="quiet">none here</p> : null}
        {values.slice(0, 200).map(({ value, n }) => (
          <label key={value}>
            <input
              type="checkbox"
              checked={own?.has(value) ?? false}
              onChange={() => toggle(facet.id, chosen, value)}
            />
            <span>{plain(words(value))}</span>
            <span className="n">{integer(n)}</span>
          </label>
        ))}
      </fieldset>
    </details>
  );
}
