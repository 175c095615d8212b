/** The built page: found beside the compiled program, or in dist/ when swebatch runs from its sources. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';

type PageMode = 'served' | 'static' | 'single';

interface PageFile {
  readonly name: string;
  readonly type: string;
  readonly body: Buffer;
}

const TYPES = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
]);

/** `npm run build:viewer` writes here; the sources in src/viewer/page hold no assets/ folder. */
function builtPage(): string | undefined {
  const candidates = [
    join(import.meta.dirname, 'page'),
    join(import.meta.dirname, '..', '..', 'dist', 'viewer', 'page'),
  ];
  return candidates.find((dir) => existsSync(join(dir, 'assets', 'viewer.js')));
}

export function readPage(dir: string | undefined = builtPage()): Map<string, PageFile> {
  if (dir === undefined || !existsSync(join(dir, 'index.html')))
    throw new Error('the page of the viewer is not built; run "npm run build:viewer" once');
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((name) =>
    TYPES.has(extname(name)),
  );
  return new Map(
    names.map((name) => {
      const path = name.split(sep).join('/');
      return [path, { name: path, type: TYPES.get(extname(name))!, body: readFileSync(join(dir, name)) }];
    }),
  );
}

/** The documents that the page needs first are on their way while its script is read (page/data/source.ts takes it). */
export const EARLY_SCRIPT =
  "swebatchFirst=fetch('api/first?at='+encodeURIComponent(location.hash),{credentials:'same-origin',cache:'no-store'})";

/** As a policy names a script that stands in the page. */
export const hashOf = (script: string): string =>
  `'sha256-${createHash('sha256').update(script).digest('base64')}'`;

const MODE = /<meta name="swebatch-mode" content="[a-z]+"\s*\/?>/;

/** Tells the page where its documents are: an API, files beside it, or itself. */
export function withMode(html: string, mode: PageMode, more = ''): string {
  if (!MODE.test(html))
    throw new Error('the built page has no swebatch-mode; run "npm run build:viewer" again');
  return html.replace(MODE, () => `<meta name="swebatch-mode" content="${mode}">${more}`);
}
