import { replaceUnits, unitsOf } from '../replaceUnits.ts';
import { plain } from './plain.ts';

export const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const SPECIAL = unitsOf(Object.keys(ENTITIES).join(''));

/** Foreign text for HTML text, attributes, and XML. */
export const html = (text: string): string =>
  replaceUnits(plain(text), SPECIAL, (code) => ENTITIES[String.fromCharCode(code)]!);
