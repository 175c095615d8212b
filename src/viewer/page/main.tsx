/** The page: a header with the way back, and the view that the address names. */
import './style.css';
import { Component, type ReactNode, render, useEffect, useRef, useState } from 'preact/compat';

import type { RunList } from '../documents/resources.ts';
import {
  type LiveState,
  mode,
  OTHER_VERSION,
  soonReady,
  useDocument,
  useLiveUpdates,
} from './data/source.ts';
import { AlignedPage } from './pages/Aligned.tsx';
import { AttemptPage } from './pages/Attempt.tsx';
import { ComparePage } from './pages/Compare.tsx';
import { HistoryPage } from './pages/History.tsx';
import { InstancesPage } from './pages/Instances.tsx';
import { RunPage } from './pages/Run.tsx';
import { RunsPage } from './pages/Runs.tsx';
import { SidePage } from './pages/Side.tsx';
import { Nothing } from './parts.tsx';
import { href, keep, kept, useRoute } from './route.ts';
import { plain } from './text/foreignText.ts';

/** A file that holds one run opens it. */
function Front() {
  const { data } = useDocument<RunList>('runs');
  const [only, ...others] = data?.runs ?? [];
  return mode === 'single' && only && others.length === 0 ? <RunPage run={only.name} /> : <RunsPage />;
}

function View() {
  const { path } = useRoute();
  const [kind, name = '', part] = path;
  switch (kind) {
    case undefined:
      return <Front />;
    case 'runs':
      return <RunsPage />;
    case 'run':
      return part === 'instances' ? <InstancesPage run={name} /> : <RunPage run={name} />;
    case 'attempt':
      return <AttemptPage key={name} id={name} />;
    case 'side':
      return <SidePage />;
    case 'compare':
      return path.length === 4 ? (
        <AlignedPage key={path.join('/')} a={name} b={part!} instance={path[3]!} />
      ) : (
        <ComparePage />
      );
    case 'history':
      return <HistoryPage instanceId={name} />;
    default:
      return (
        <Nothing title="There is no such page">
          <p>The address may have been cut.</p>
        </Nothing>
      );
  }
}

const LIVE: Record<LiveState, string> = {
  file: '',
  connecting: 'connecting',
  following: 'live',
  lost: 'connection lost, trying again',
  'other version': 'another version',
};

function Header({ onKeys, live }: { onKeys: () => void; live: LiveState }) {
  const { path } = useRoute();
  const { data } = useDocument<RunList>('runs');
  const [theme, nextTheme] = useTheme();
  const madeAt = data?.madeAt;
  const link = (to: string[], text: string, isHere: boolean) => (
    <a href={href(to)} aria-current={isHere ? 'page' : undefined}>
      {text}
    </a>
  );
  return (
    <header className="top">
      <nav aria-label="Pages">
        <a className="brand" href={href(['runs'])}>
          swebatch
        </a>
        {link(['runs'], 'Runs', path[0] === undefined || path[0] === 'runs')}
        {link(['compare'], 'Compare', path[0] === 'compare')}
        {path[0] === 'run' && path[1] !== undefined ? (
          <>
            <span aria-hidden="true">›</span>
            {link(['run', path[1]], plain(path[1]), path[2] === undefined)}
            {link(['run', path[1], 'instances'], 'Instances', path[2] === 'instances')}
          </>
        ) : null}
      </nav>
      <span className="spacer" />
      <button type="button" className="keyhint noprint" onClick={onKeys} title="all keys">
        <kbd>j</kbd> <kbd>k</kbd> move · <kbd>Enter</kbd> open · <kbd>Esc</kbd> up · <kbd>?</kbd> keys
      </button>
      {live === 'file' ? (
        <span className="quiet">
          {madeAt ? `as of ${madeAt.slice(0, 16).replace('T', ' ')} UTC` : 'file'}
        </span>
      ) : (
        <span role="status" className={`live ${live}`}>
          {LIVE[live]}
        </span>
      )}
      <button type="button" onClick={nextTheme} title="colours: follow the system, light, dark">
        {theme}
      </button>
    </header>
  );
}

const KEYS: [string, string][] = [
  ['/', 'to the search box'],
  ['j k ↑ ↓', 'next and previous row or message; Home, End, page keys'],
  ['Enter', 'open the row'],
  ['[ ]', 'previous and next instance of the list you came from'],
  ['n p', 'next and previous failed command, or place that the search found'],
  ['Esc', 'close what is open; else one level up'],
  ['?', 'this list'],
];

function Help({ onClose }: { onClose: () => void }) {
  const close = useRef<HTMLButtonElement>(null);
  // A dialog takes the focus that it was opened for.
  useEffect(() => close.current?.focus(), []);
  return (
    <div className="help" role="dialog" aria-modal="true" aria-label="Keyboard">
      <h2>Keyboard</h2>
      <dl>
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button ref={close} type="button" onClick={onClose}>
        close
      </button>
    </div>
  );
}

/** A page that cannot draw one document says so and keeps the way back. */
class Boundary extends Component<{ children: ReactNode; where: string }, { error: Error | undefined }> {
  override state: { error: Error | undefined } = { error: undefined };
  static override getDerivedStateFromError(error: Error) {
    return { error };
  }
  override componentDidUpdate(before: { where: string }) {
    if (before.where !== this.props.where && this.state.error) this.setState({ error: undefined });
  }
  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <div role="alert" className="pad">
        <h1>This view cannot be drawn</h1>
        <p>{plain(this.state.error.message)}</p>
        <a href={href(['runs'])}>All runs</a>
      </div>
    );
  }
}

function App() {
  const [help, setHelp] = useState(false);
  const { path } = useRoute();
  const live = useLiveUpdates();
  useKeys(setHelp);
  return (
    <>
      <button type="button" className="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <Header onKeys={() => setHelp(true)} live={live} />
      {live === 'other version' ? (
        <p role="alert" className="problem">
          {OTHER_VERSION}
        </p>
      ) : null}
      <main id="main" tabIndex={-1}>
        <Boundary where={path.join('/')}>
          <View />
        </Boundary>
      </main>
      {help ? <Help onClose={() => setHelp(false)} /> : null}
    </>
  );
}

const THEMES = ['auto', 'light', 'dark'];

function useTheme(): [theme: string, next: () => void] {
  const [theme, setTheme] = useState(() => THEMES.find((one) => one === kept('theme')) ?? 'auto');
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    keep('theme', theme);
  }, [theme]);
  return [theme, () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!)];
}

await soonReady();
render(<App />, document.getElementById('app')!);

// Keys that work wherever the focus is: into the table or trajectory, to the filter, one level up, to the neighbours.

/** Moves that belong to the table or the trajectory of the page, even before anybody clicked it. */
const MOVES = new Set('j k n p Enter ArrowDown ArrowUp PageDown PageUp Home End'.split(' '));

const find = (selector: string): HTMLElement | null => document.querySelector<HTMLElement>(selector);

/** The focus is nowhere in particular, as after a page opened. */
const isNowhere = (target: HTMLElement): boolean => target === document.body || target.id === 'main';

function handOver(event: KeyboardEvent): void {
  const list = find('main [data-keys]');
  // A page that scrolls keeps the keys that scroll it.
  if (!list || (list.dataset.keys === 'letters' && event.key.length > 1)) return;
  list.focus({ preventScroll: true });
  const { key, shiftKey } = event;
  const moved = new KeyboardEvent('keydown', { key, shiftKey, bubbles: true, cancelable: true });
  if (!list.dispatchEvent(moved)) event.preventDefault();
}

/** For how long a key waits for the page that it is for. */
const WAIT_MS = 2000;

/**
 * A page is drawn a moment after its address is there: until then its links are those of the page before, or none. A key that is pressed by then is
 * for the page that comes.
 */
function follow(selector: string, until = performance.now() + WAIT_MS): void {
  const link = document.querySelector<HTMLAnchorElement>(`main ${selector}`);
  const isBefore = link ? link.hash === location.hash : find('main [data-loading]') !== null;
  if (!isBefore) link?.click();
  else if (performance.now() < until) requestAnimationFrame(() => follow(selector, until));
}

/** The open part closes first; then a box loses the focus; then the page above comes. */
function onEscape(target: HTMLElement, toggleHelp: (open: boolean) => void): void {
  const open = find('details.menu[open], details.picker[open]');
  if (find('.help')) toggleHelp(false);
  else if (open instanceof HTMLDetailsElement) {
    open.open = false;
    open.querySelector('summary')?.focus();
  } else if (target.matches('input,textarea,select')) target.blur();
  else follow('[data-up]');
}

function useKeys(toggleHelp: (open: boolean) => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (event.key === 'Escape') return onEscape(target, toggleHelp);
      if (target.matches('input:not([type="checkbox"]),textarea,select')) return;
      if (event.key === '?') toggleHelp(true);
      else if (event.key === '/') {
        const box = document.querySelector<HTMLInputElement>('main input[type="search"]');
        box?.focus();
        box?.select();
        event.preventDefault();
      } else if (event.key === '[') follow('[data-previous]');
      else if (event.key === ']') follow('[data-next]');
      else if (MOVES.has(event.key) && isNowhere(target)) handOver(event);
    };
    // Menus over the page close at a click beside them.
    const onClick = (event: MouseEvent) => {
      for (const menu of document.querySelectorAll<HTMLDetailsElement>(
        'details.menu[open], details.picker[open]',
      ))
        if (!menu.contains(event.target as Node)) menu.open = false;
    };
    document.addEventListener('keydown', onKey);
    document.addEventListener('click', onClick);
    return () => {
      document.removeEventListener('keydown', onKey);
      document.removeEventListener('click', onClick);
    };
  }, [toggleHelp]);
}
