import { replaceUnits, unitsOf } from '../replaceUnits.ts';
import { ENTITIES } from './html.ts';
import { line } from './plain.ts';

// GitHub looks for mentions, issues and addresses in what it rendered, where an escape or an entity is the character again.
const APART = '&#8203;';

const SPECIAL = unitsOf('&<>\\`*_{}[]()#|~!');

/** Foreign text for one line of Markdown: no table, link, image, emphasis, mention or tag comes from data. */
export const markdown = (text: string): string =>
  replaceUnits(line(text), SPECIAL, (code) => {
    const char = String.fromCharCode(code);
    return ENTITIES[char] ?? `\\${char}`;
  })
    .replace(/@(?=\w)/g, `@${APART}`)
    .replace(/\\#(?=\d)/g, `\\#${APART}`)
    .replace(/:(?=\/\/)/g, `:${APART}`)
    .replace(/\bwww\./gi, (www) => `${www.slice(0, 3)}${APART}.`);
