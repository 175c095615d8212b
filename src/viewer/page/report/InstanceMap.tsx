/** A cell for each trial: its verdict as colour, its cost as size. The whole night at one look; each cell leads to its trajectory. */
// biome-ignore-all lint/a11y/useFocusableInteractive: focus stays on the list, which names its active cell (aria-activedescendant)
// biome-ignore-all lint/a11y/noNoninteractiveElementToInteractiveRole: thousands of cells are as light as they can be
import {
  type KeyboardEvent,
  type MouseEvent,
  memo,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'preact/compat';
import {
  type CellGroup,
  costSizes,
  type GroupBy,
  groupCells,
  type MapCell,
} from '../../documents/mapGroups.ts';
import { go, href, setQuery, useRoute } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { integer, nano, words } from '../text/numbers.ts';

const GROUPS: readonly [GroupBy, string][] = [
  ['repo', 'repository'],
  ['difficulty', 'difficulty'],
  ['arm', 'arm'],
];

interface MapProps {
  cells: readonly MapCell[];
  /** Trials of the run; more than `cells` where there are too many to draw. */
  total: number;
  run: string;
}

export function InstanceMap({ cells, total, run }: MapProps) {
  const { query } = useRoute();
  const possible = GROUPS.filter(([by]) => new Set(cells.map((cell) => cell[by])).size > 1);
  const several = possible.some(([by]) => by === 'arm');
  // Arms side by side are what a run with several is made for.
  const usual = several ? 'arm' : (possible[0]?.[0] ?? 'repo');
  const by = possible.find(([name]) => name === query.get('by'))?.[0] ?? usual;
  const colour: Colour = query.get('colour') === 'class' ? 'exitClass' : 'verdict';
  const groups = useMemo(() => groupCells(cells, by), [cells, by]);
  return (
    <section className="mapbox keep" aria-labelledby="map-title">
      <h2 id="map-title">Every trial</h2>
      <div className="bar noprint">
        {possible.length > 1 ? (
          <label>
            grouped by{' '}
            <select value={by} onChange={(event) => setQuery({ by: event.currentTarget.value })}>
              {possible.map(([name, label]) => (
                <option key={name} value={name}>
                  {label}
                </option>
              ))}
            </select>
          </label>
        ) : null}
        <label>
          coloured by{' '}
          <select
            value={colour === 'exitClass' ? 'class' : 'verdict'}
            onChange={(event) =>
              setQuery({ colour: event.currentTarget.value === 'class' ? 'class' : undefined })
            }
          >
            <option value="verdict">verdict</option>
            <option value="class">exit class</option>
          </select>
        </label>
        {total > cells.length ? (
          <span className="quiet">
            the first {integer(cells.length)} of {integer(total)} trials
          </span>
        ) : null}
      </div>
      <MapLegend cells={cells} colour={colour} run={run} />
      <Cells groups={groups} colour={colour} nameOf={several ? withArm : withEpoch} />
    </section>
  );
}

/** Where a cell is among all cells of the groups in a row. */
const cellId = (at: number): string => `cell-${at}`;
const slug = (word: string): string => word.replace(/[^a-z_]/g, '');

interface CellsProps {
  readonly groups: readonly CellGroup[];
  readonly colour: Colour;
  /** The name that tells a trial from others of its run. */
  readonly nameOf: (cell: MapCell) => string;
}

const withEpoch = ({ instanceId, epoch }: MapCell): string =>
  epoch > 1 ? `${plain(instanceId)}, epoch ${epoch}` : plain(instanceId);
const withArm = (cell: MapCell): string => `${withEpoch(cell)}, ${plain(cell.arm)}`;

function Cells({ groups, colour, nameOf }: CellsProps) {
  const flat = useMemo(() => groups.flatMap((group) => group.cells), [groups]);
  const [at, setAt] = useState<number | undefined>(undefined);
  const cell = at === undefined ? undefined : flat[at];
  const box = useRef<HTMLDivElement>(null);
  const choose = (next: number) => {
    const place = Math.max(0, Math.min(flat.length - 1, next));
    setAt(place);
    // The thousands of cells are not drawn again for one that changes.
    box.current?.querySelector('.cell.active')?.classList.remove('active');
    const element = document.getElementById(cellId(place));
    element?.classList.add('active');
    return element;
  };
  const open = (place: number | undefined) => {
    const attempt = place === undefined ? undefined : flat[place]?.attempt;
    if (attempt !== undefined && attempt !== null) go(href(['attempt', attempt]));
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10, j: 1, k: -1 }[event.key];
    const next =
      { Home: 0, End: flat.length - 1 }[event.key] ??
      (step === undefined ? undefined : at === undefined ? 0 : at + step);
    if (event.key === 'Enter') open(at);
    else if (next !== undefined) choose(next)?.scrollIntoView({ block: 'nearest' });
    else return;
    event.preventDefault();
  };
  const cellUnder = (event: MouseEvent<HTMLElement>): number | undefined => {
    const found = (event.target as HTMLElement).closest<HTMLElement>('[data-at]')?.dataset.at;
    return found === undefined ? undefined : Number(found);
  };
  return (
    <>
      <p className="mapdetail noprint" role="status">
        {cell ? (
          <>
            <strong>{nameOf(cell)}</strong> {words(cell.verdict)} · {plain(words(cell.reason))}
            {cell.steps === null ? '' : ` · ${integer(cell.steps)} steps`}
            {cell.costNano === null ? '' : ` · ${nano(cell.costNano)}`}
          </>
        ) : (
          <span className="quiet">
            Point at a cell or use the arrow keys; click or Enter opens its trajectory.
          </span>
        )}
      </p>
      {/* biome-ignore lint/a11y/useKeyWithMouseEvents: the arrow keys show the same */}
      <div
        ref={box}
        className={flat.length > 1500 ? 'map dense' : 'map'}
        role="listbox"
        aria-label="Trials"
        aria-activedescendant={at === undefined ? undefined : cellId(at)}
        tabIndex={0}
        data-keys="letters"
        onKeyDown={onKeyDown}
        onMouseOver={(event) => {
          const place = cellUnder(event);
          if (place !== undefined) choose(place);
        }}
        onClick={(event) => open(cellUnder(event))}
      >
        <Groups groups={groups} colour={colour} nameOf={nameOf} />
      </div>
    </>
  );
}

const Groups = memo(function Groups({ groups, colour, nameOf }: CellsProps) {
  const sizeOf = useMemo(() => costSizes(groups.flatMap((group) => group.cells)), [groups]);
  const starts = groups.map((_group, i) =>
    groups.slice(0, i).reduce((sum, group) => sum + group.cells.length, 0),
  );
  return groups.map((group, i) => (
    // biome-ignore lint/a11y/useSemanticElements: options of a listbox are grouped by this role
    <div key={group.name} role="group" aria-label={plain(group.name) || 'not said'} className="cellgroup">
      <div className="cellname" aria-hidden="true">
        {plain(group.name) || 'not said'} <span className="quiet">{integer(group.cells.length)}</span>
      </div>
      <CellBox cells={group.cells} from={starts[i]!} colour={colour} nameOf={nameOf} sizeOf={sizeOf} />
    </div>
  ));
});

interface CellBoxProps {
  readonly cells: readonly MapCell[];
  /** The place of the first. */
  readonly from: number;
  readonly colour: Colour;
  readonly nameOf: (cell: MapCell) => string;
  readonly sizeOf: (cell: MapCell) => number;
}

/** Hundreds of elements that nothing is known of but what they show: made by hand in a third of the time. */
function CellBox({ cells, from, colour, nameOf, sizeOf }: CellBoxProps) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const active = box.current!.querySelector('.cell.active')?.id;
    const model = document.createElement('i');
    model.setAttribute('role', 'option');
    model.ariaSelected = 'false';
    const made = cells.map((cell, n) => {
      const element = model.cloneNode() as HTMLElement;
      element.id = cellId(from + n);
      element.dataset.at = String(from + n);
      element.ariaLabel = `${nameOf(cell)}, ${words(cell.verdict)}`;
      element.className = `cell ${slug(cell[colour])} s${sizeOf(cell)}${element.id === active ? ' active' : ''}`;
      return element;
    });
    box.current!.replaceChildren(...made);
  }, [cells, from, colour, nameOf, sizeOf]);
  return <div ref={box} className="cells" role="presentation" />;
}

type Colour = 'verdict' | 'exitClass';

function MapLegend({ cells, colour, run }: { cells: readonly MapCell[]; colour: Colour; run: string }) {
  const counts = useMemo(
    () => [...Map.groupBy(cells, (cell) => cell[colour])].sort((a, b) => b[1].length - a[1].length),
    [cells, colour],
  );
  const costs = useMemo(
    () => cells.flatMap(({ costNano }) => costNano ?? []).toSorted((a, b) => a - b),
    [cells],
  );
  const field = colour === 'exitClass' ? 'class' : 'verdict';
  return (
    <ul className="legend">
      {counts.map(([name, own]) => (
        <li key={name}>
          <a href={href(['run', run, 'instances'], { [field]: name })}>
            <i className={`cell s5 ${slug(name)}`} aria-hidden="true" />
            {plain(words(name))}
          </a>{' '}
          {integer(own.length)}
        </li>
      ))}
      {costs.length > 0 && costs[0] !== costs.at(-1) ? (
        <li className="quiet">
          size: cost, {nano(costs[0])} to {nano(costs.at(-1))}
        </li>
      ) : null}
    </ul>
  );
}
