import { plain } from './plain.ts';

export const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Foreign text for HTML text, attributes, and XML. */
export const html = (text: string): string => plain(text).replace(/[&<>"']/g, (c) => ENTITIES[c]!);
