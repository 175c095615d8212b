import { replaceUnits, unitsOf } from '../replaceUnits.ts';
import { ENTITIES } from './html.ts';
import { line } from './plain.ts';

// GitHub looks for mentions, issues and addresses in what it rendered, where an escape or an entity is the character again.
const APART = '&#8203;';

const SPECIAL = unitsOf('&<>\\`*_{}[]()#|~!');

/** Foreign text for one line of Markdown: no table, link, image, emphasis, mention or tag comes from data. */
export function markdown(text: string): string {
  let written = replaceUnits(line(text), SPECIAL, (code) => {
    const char = String.fromCharCode(code);
    return ENTITIES[char] ?? `\\${char}`;
  });
  // A search for the sign alone is much faster than for what stands around it, and most texts have none of them.
  if (written.includes('@')) written = written.replace(/@(?=\w)/g, `@${APART}`);
  if (written.includes('\\#')) written = written.replace(/\\#(?=\d)/g, `\\#${APART}`);
  if (written.includes('://')) written = written.replace(/:(?=\/\/)/g, `:${APART}`);
  if (written.includes('.')) written = written.replace(/\bwww\./gi, (www) => `${www.slice(0, 3)}${APART}.`);
  return written;
}
