/** Text in JSON of others: "abc" of a cell, "ab" of the content [{text: "a"}, {type: "image"}, "b"]. */
import { recordOf } from '../isRecord.ts';

/** A value that is text; anything else is empty. */
export const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The text of a content, which may be a list of parts. Parts without text are left out. */
export const contentText = (content: unknown): string =>
  Array.isArray(content)
    ? content.map((part) => stringOf(typeof part === 'string' ? part : recordOf(part).text)).join('')
    : stringOf(content);
