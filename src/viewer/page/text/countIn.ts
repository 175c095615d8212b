/** How often a text holds a word. */
export function countIn(text: string, word: string): number {
  if (word === '') return 0;
  let n = 0;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) n += 1;
  return n;
}
