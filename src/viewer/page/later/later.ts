/** Loads the libraries that draw diffs and charts (libraries.ts) when the first of them is in sight. */
import { useEffect, useState } from 'preact/compat';

type Libraries = typeof import('./libraries.ts');

declare global {
  var swebatchLater: Libraries | undefined;
}

let asked: Promise<Libraries> | undefined;

function libraries(): Promise<Libraries> {
  asked ??= globalThis.swebatchLater ? Promise.resolve(globalThis.swebatchLater) : fetched();
  return asked;
}

const fetched = (): Promise<Libraries> =>
  new Promise((done, failed) => {
    const script = document.createElement('script');
    const lacking = () => {
      // The next one that is in sight asks again.
      asked = undefined;
      failed(new Error(`${script.src} does not load`));
    };
    script.src = 'assets/later.js';
    script.onerror = lacking;
    script.onload = () => (globalThis.swebatchLater ? done(globalThis.swebatchLater) : lacking());
    document.head.append(script);
  });

/** Undefined until they are there; `failed` says why they are not. */
export function useLibraries(): { libraries: Libraries | undefined; failed: string } {
  const [found, setFound] = useState({ libraries: globalThis.swebatchLater, failed: '' });
  useEffect(() => {
    if (found.libraries) return;
    let isWanted = true;
    const ask = () =>
      libraries().then(
        (read) => isWanted && setFound({ libraries: read, failed: '' }),
        (error: unknown) => isWanted && setFound({ libraries: undefined, failed: String(error) }),
      );
    // The page in sight is painted first: to read the libraries takes longer than to draw a page.
    const frame = requestAnimationFrame(() => setTimeout(() => void ask()));
    return () => {
      isWanted = false;
      cancelAnimationFrame(frame);
    };
  }, [found.libraries]);
  return found;
}
