/** Where a reply speaks and where it acts. */

interface Part {
  kind: 'text' | 'code';
  text: string;
  /** The word behind the fence. */
  language?: string;
}

const OPENS = /^```[\w-]*[ \t]*$/;
const CLOSES = /^```[ \t]*\r?$/;

/** Splits a reply at its fenced blocks; what is inside a fence is an action or an example of one. */
export function parts(content: string): Part[] {
  const found: Part[] = [];
  let at = 0;
  let opened: { fence: number; code: number; language: string } | null = null;
  for (let from = 0; from < content.length; ) {
    const end = content.indexOf('\n', from);
    const line = content.slice(from, end < 0 ? undefined : end);
    if (opened && CLOSES.test(line)) {
      if (opened.fence > at) found.push({ kind: 'text', text: content.slice(at, opened.fence) });
      found.push({
        kind: 'code',
        text: content.slice(opened.code, from).replace(/\n$/, ''),
        language: opened.language,
      });
      at = from + line.length - (line.endsWith('\r') ? 1 : 0);
      opened = null;
    } else if (!opened && end >= 0 && OPENS.test(line))
      opened = { fence: from, code: end + 1, language: line.slice(3).trim() };
    if (end < 0) break;
    from = end + 1;
  }
  if (at < content.length) found.push({ kind: 'text', text: content.slice(at) });
  return found.filter((part) => part.text.trim() !== '');
}
