/** Keys that work wherever the focus is: into the table or trajectory, to the filter, one level up, to the neighbours. */
import { useEffect } from 'react';

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

/** What is open closes first; then a box loses the focus; then the page above comes. */
function onEscape(target: HTMLElement, toggleHelp: (open: boolean) => void): void {
  const open = find('details.menu[open], details.picker[open]');
  if (find('.help')) toggleHelp(false);
  else if (open instanceof HTMLDetailsElement) {
    open.open = false;
    open.querySelector('summary')?.focus();
  } else if (target.matches('input,textarea,select')) target.blur();
  else find('[data-up]')?.click();
}

export function useKeys(toggleHelp: (open: boolean) => void): void {
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
      } else if (event.key === '[') find('[data-previous]')?.click();
      else if (event.key === ']') find('[data-next]')?.click();
      else if (MOVES.has(event.key) && isNowhere(target)) handOver(event);
    };
    // What lies over the page closes when somebody clicks beside it.
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
