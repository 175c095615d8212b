/** Text from models, repositories and files, made harmless for the place where it is shown. */

// ECMA-48: CSI, OSC and other string sequences (both 7-bit and 8-bit introducers), then two-byte escapes.
const ESCAPES =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*(?:[@-~]|$)|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)|\x1b[ -/]*[0-~]?/g;
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
// Directional overrides, isolates and marks can make a line read as another; zero-width characters hide text.
const INVISIBLE = /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** For a terminal or a log: no escape sequence, no control character, no direction change. Line breaks and tabs stay. */
export const plain = (text: string): string =>
  text.replace(ESCAPES, '').replace(CONTROLS, '').replace(INVISIBLE, '').toWellFormed();

/** The same on one line. */
export const line = (text: string): string => plain(text).replace(/\s+/g, ' ').trim();

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** For HTML text, attributes, and XML. */
export const html = (text: string): string => plain(text).replace(/[&<>"']/g, (c) => ENTITIES[c]!);

// GitHub looks for mentions, issues and addresses in what it rendered, where an escape or an entity is the character again.
const APART = '&#8203;';

/** For Markdown on one line: no table, link, image, emphasis, mention or tag comes from data. */
export const markdown = (text: string): string =>
  line(text)
    .replace(/[&<>]/g, (c) => ENTITIES[c]!)
    .replace(/[\\`*_{}[\]()#|~!]/g, (c) => `\\${c}`)
    .replace(/@(?=\w)/g, `@${APART}`)
    .replace(/\\#(?=\d)/g, `\\#${APART}`)
    .replace(/:(?=\/\/)/g, `:${APART}`)
    .replace(/\bwww\./gi, (www) => `${www.slice(0, 3)}${APART}.`);
