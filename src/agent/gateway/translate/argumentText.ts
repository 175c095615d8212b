/** The arguments of a call, which are text that should be a JSON object. Pure. */
import { asObject } from '../../../model/dialects/shapes.ts';
import type { Body } from './commonForm.ts';

/** What is no object comes as one with the text in it, so that the program can say what is wrong with it. */
export function objectOfText(text: string): Body {
  if (text.trim() === '') return {};
  try {
    return asObject(JSON.parse(text)) ?? { unreadable_arguments: text };
  } catch {
    return { unreadable_arguments: text };
  }
}
