/**
 * The provider's own words in a message. `messages.3.content: "prompt is too long: 5 tokens > 4" is no JSON` says nothing about a prompt:
 * the provider repeats somebody's text. 28 November 2026: six of six such rejections were taken for a full context or a refusal.
 */

/** A body of megabytes says in its first lines what it is about. */
const CHARACTERS = 4000;

/** Gateways put the name of the error in front: `litellm.BadRequestError: OpenAIException - prompt is too long: …`. */
const LABEL =
  /^(?:(?:an )?(?:[\w.]{0,80}(?:error|exception)|\d{3,4}|<\d{3}> [\w.]{1,80}|(?:http |api |provider )?error(?: code)?:? \d{3}|http \d{3}|(?:api|upstream|provider|validation|input validation|bad request) error|error from (?:the )?provider(?: \(\w{1,40}\))?|bad request|invalid request|failed to start sampling|provider returned error|the model returned the following errors|(?:upstream )?error from \w{1,40}(?: \w{1,40})?|unauthorized|authentication (?:failed|error)|\/(?:v1\/)?(?:chat\/completions|completions|messages|responses)|an error occurred \(\w{1,60}\) when calling the \w{1,60} operation(?: \(reached max retries: \d\))?)(?: \(\d{3}\))?(?::\s{0,9}| -\s{0,9}|\s(?=[{[])))/i;

/** The message without such names. */
export function withoutLabels(message: string): string {
  let rest = message.trim();
  for (let n = 0; n < 8; n += 1) {
    const next = rest.replace(LABEL, '').trimStart();
    if (next === rest) break;
    rest = next;
  }
  return rest;
}

const CLOSES: Readonly<Record<string, string>> = {
  '"': '"',
  '`': '`',
  "'": "'",
  '“': '”',
  '«': '»',
  '「': '」',
  '『': '』',
};
const WORD = /[\p{L}\p{N}_]/u;
/** An apostrophe between two letters opens or closes nothing: `model's`. */
const isWord = (char: string | undefined): boolean => char !== undefined && WORD.test(char);

/** From each opening quotation mark to its end; one that nobody closes quotes the rest. */
function quotations(text: string): [from: number, to: number][] {
  const found: [number, number][] = [];
  for (let at = 0; at < text.length; at += 1) {
    const close = CLOSES[text[at]!];
    if (close === undefined || (close === "'" && isWord(text[at - 1]))) continue;
    let to = text.indexOf(close, at + 1);
    if (close === "'") while (to !== -1 && isWord(text[to + 1])) to = text.indexOf(close, to + 1);
    if (to === -1 && close === "'") continue;
    found.push([at, to === -1 ? text.length : to]);
    at = to === -1 ? text.length : to;
  }
  return found;
}

/** The words before a wording in its own sentence: `This endpoint's`, `However, your newly created`. Behind any others it may be repeated. */
const OPENS =
  /^[\s([*]{0,9}(?:(?:however|but|sorry|unfortunately),? )?(?:(?:the|this|that|your|our|an?) (?:[\w'./-]{1,60} ){0,2})?$/;
/** Behind these stands what somebody else wrote, also after an article. */
const REPEATS =
  /\b(?:fields?|parameters?|arguments?|propert(?:y|ies)|named|called|titled|files?|paths?|folders?|director(?:y|ies)|text|strings?|phrase|words?|saying|says|said|reads|wrote|written|quot\w{1,10}|contents?|contains|mentions|includes|has|was|is)\b/;
/** A label that is no gateway's: `No such file: …`, `messages.3.content: …`, `this input:` and a new line. A number behind it is a value. */
const LABELS = /:\s{1,9}(?:[^\d\s]|$)/;
const SENTENCE_END = /[.!?]["')]?\s|\n/g;

function lastSentence(before: string): string {
  let from = 0;
  for (const end of before.matchAll(SENTENCE_END)) from = end.index + end[0].length;
  return before.slice(from);
}

/** A sentence of the provider's own begins here: in no quotation, behind no label, and not as the rest or the begin of a name or a path. */
function isOwn(
  text: string,
  from: number,
  to: number,
  quoted: readonly (readonly [number, number])[],
): boolean {
  if (quoted.some(([opens, closes]) => opens < from && from <= closes)) return false;
  // The rest of a name or a path: `… filtering policy.md`.
  if (/^\w{0,40}(?:[/\\]|\.\p{L})/u.test(text.slice(to, to + 60))) return false;
  const own = [...quoted]
    .reverse()
    .reduce(
      (rest, [opens, closes]) => (closes < from ? `${rest.slice(0, opens)}_${rest.slice(closes + 1)}` : rest),
      text.slice(0, from),
    );
  const sentence = lastSentence(own);
  return OPENS.test(sentence) && !LABELS.test(own) && !REPEATS.test(sentence);
}

const plain = (message: string): string =>
  message.slice(0, CHARACTERS).toLowerCase().replaceAll(/[‘’]/g, "'").trim();

/** The message in small letters, without sentences in quotation marks; the names of parameters stay. */
export function ownWords(message: string): string {
  const text = plain(message);
  return quotations(text)
    .reverse()
    .reduce(
      (rest, [from, to]) =>
        /\s/.test(rest.slice(from, to)) ? rest.slice(0, from) + rest.slice(to + 1) : rest,
      text,
    );
}

/** Whether a wording is anywhere, also where it is quoted: for errors that count against nobody. */
export const isMentioned = (message: string, wordings: readonly RegExp[]): boolean =>
  wordings.some((wording) => wording.test(plain(message)));

/** Wordings are in small letters, with straight apostrophes. */
export function isSaid(message: string, wordings: readonly RegExp[]): boolean {
  const whole = plain(message);
  const unquoted = /^"([^"]*)"$/.exec(whole)?.[1] ?? whole;
  return [...new Set([unquoted, withoutLabels(unquoted)])].some((text) => {
    const quoted = quotations(text);
    return wordings.some((wording) => isOwnSentence(text, wording, quoted));
  });
}

function isOwnSentence(text: string, wording: RegExp, quoted: ReturnType<typeof quotations>): boolean {
  const anchored = wording.source.startsWith('^');
  // Behind a quotation it may be said once more.
  for (let from = 0; from < text.length; ) {
    const found = wording.exec(text.slice(from));
    if (!found) return false;
    const at = from + found.index;
    if (isOwn(text, at, at + found[0].length, quoted)) return true;
    if (anchored) return false;
    from = at + 1;
  }
  return false;
}
