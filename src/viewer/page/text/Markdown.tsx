/** A model's text as Markdown: headings, lists, emphasis and code. No links, no pictures, no markup of its own. */
import type { ReactNode } from 'preact/compat';
import { plain } from './foreignText.ts';

const TOO_LONG = 50_000;
const HEADING = /^#{1,6} +(?=\S)/;
const ITEM = /^ {0,8}(?:[-*+]|\d{1,3}[.)]) +(?=\S)/;
const NUMBERED = /^ {0,8}\d/;

interface Piece {
  kind: 'heading' | 'ul' | 'ol' | 'text';
  lines: string[];
}

/** Lines of one kind belong together; an empty line ends a paragraph. */
function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = [];
  for (const line of text.split('\n')) {
    const open = pieces.at(-1);
    if (HEADING.test(line)) pieces.push({ kind: 'heading', lines: [line.replace(HEADING, '')] });
    else if (ITEM.test(line)) {
      const kind = NUMBERED.test(line) ? 'ol' : 'ul';
      const item = line.replace(ITEM, '');
      if (open?.kind === kind) open.lines.push(item);
      else pieces.push({ kind, lines: [item] });
    } else if (line.trim() === '') pieces.push({ kind: 'text', lines: [] });
    // A line that is moved in goes on with its item.
    else if ((open?.kind === 'ul' || open?.kind === 'ol') && /^ {2,}\S/.test(line))
      open.lines.push(`${open.lines.pop()}\n${line.trim()}`);
    else if (open?.kind === 'text') open.lines.push(line);
    else pieces.push({ kind: 'text', lines: [line] });
  }
  return pieces.filter(({ lines }) => lines.length > 0);
}

/** `code`, **bold** and *italic*; an underscore stays what it is, because names of tests are full of them. */
const SPAN = /`([^`\n]{1,400})`|\*\*([^*\n]{1,400})\*\*|(?<![\w*])\*([^*\s][^*\n]{0,400})\*(?![\w*])/g;

function spansOf(text: string): ReactNode[] {
  const found: ReactNode[] = [];
  let at = 0;
  for (const match of text.matchAll(SPAN)) {
    found.push(plain(text.slice(at, match.index)));
    const [whole, code, bold, italic] = match;
    const key = match.index;
    if (code !== undefined) found.push(<code key={key}>{plain(code)}</code>);
    else if (bold !== undefined) found.push(<strong key={key}>{plain(bold)}</strong>);
    else found.push(<em key={key}>{plain(italic!)}</em>);
    at = match.index + whole.length;
  }
  return [...found, plain(text.slice(at))];
}

export function Markdown({ text }: { text: string }) {
  if (text.length > TOO_LONG) return <pre className="prose">{plain(text)}</pre>;
  return (
    <div className="prose markdown">
      {piecesOf(text).map(({ kind, lines }, i) => {
        const items = lines.map((line, n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of one immutable text
          <li key={n}>{spansOf(line)}</li>
        ));
        // biome-ignore-start lint/suspicious/noArrayIndexKey: pieces of one immutable text
        if (kind === 'ul') return <ul key={i}>{items}</ul>;
        if (kind === 'ol') return <ol key={i}>{items}</ol>;
        return (
          <p key={i} className={kind === 'heading' ? 'title' : undefined}>
            {spansOf(lines.join('\n'))}
          </p>
        );
        // biome-ignore-end lint/suspicious/noArrayIndexKey: pieces of one immutable text
      })}
    </div>
  );
}
