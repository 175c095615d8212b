/** The XML report of doctest (nlohmann/json). A small reader for the elements it uses; a report that is not well formed is an error. */
import { type LogParser, ParserError, StatusMap } from './logParser.ts';

const TAG =
  /<(?:!--[\s\S]*?-->|!\[CDATA\[[\s\S]*?\]\]>|\?[\s\S]*?\?>|(\/?)([A-Za-z_:][\w:.-]*)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>)/y;
const ATTRIBUTE = /([\w:.-]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/g;
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function decodeEntities(text: string): string {
  return text.replace(/&(?:#x([0-9a-fA-F]+)|#([0-9]+)|(\w+));|&/g, (whole, hex, decimal, name) => {
    const code =
      hex !== undefined ? Number.parseInt(hex, 16) : decimal !== undefined ? Number(decimal) : undefined;
    if (code !== undefined && code > 0 && code <= 0x10ffff) return String.fromCodePoint(code);
    const known = name === undefined ? undefined : ENTITIES[name];
    if (known === undefined)
      throw new ParserError(`the doctest report has an entity that XML does not know: ${whole}`);
    return known;
  });
}

function attributes(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const match of text.matchAll(ATTRIBUTE))
    found.set(match[1]!, decodeEntities((match[2] ?? match[3] ?? '').replace(/[\t\n\r]/g, ' ')));
  return found;
}

interface Open {
  readonly tag: string;
  readonly testCase: string | undefined;
  /** Index into the results, for a SubCase. */
  readonly result: number | undefined;
  failed: boolean;
}

export const parseDoctest: LogParser = (log) => {
  const found = new StatusMap();
  const start = log.indexOf('<doctest');
  if (start < 0) return found;
  const end = log.indexOf('</doctest>', start);
  if (end < 0) throw new ParserError('the doctest report is cut off: it has no </doctest>');
  const xml = log.slice(start, end + '</doctest>'.length);

  const illegal = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/.exec(xml);
  if (illegal) throw new ParserError('the doctest report holds a character that XML forbids');
  const results: { name: string; failed: boolean }[] = [];
  const open: Open[] = [];
  for (let at = xml.indexOf('<'); at >= 0; at = xml.indexOf('<', TAG.lastIndex)) {
    TAG.lastIndex = at;
    const match = TAG.exec(xml);
    if (match === null)
      throw new ParserError(`the doctest report is not well formed at "${xml.slice(at, at + 40)}"`);
    const [whole, closing, tag, text, empty] = match;
    if (/^<\?xml[\s?]/i.test(whole))
      throw new ParserError('the doctest report holds an XML declaration that is not at its start');
    if (tag === undefined) continue;
    if (closing === '/') {
      const closed = open.pop();
      if (closed?.tag !== tag)
        throw new ParserError(`the doctest report closes <${tag}> where <${closed?.tag}> is open`);
      const around = open.at(-1);
      if (closed.failed && closed.result !== undefined) results[closed.result]!.failed = true;
      if (closed.failed && around) around.failed = true;
      continue;
    }
    const given = attributes(text ?? '');
    const around = open.at(-1);
    const name = given.get('name') ?? 'None';
    const testCase = tag === 'TestCase' ? name : around?.testCase;
    const isResult = tag === 'SubCase' && testCase !== undefined;
    if (isResult) results.push({ name: `${testCase} > ${name}`, failed: false });
    const failed = tag === 'Expression' && given.get('success') !== 'true';
    if (empty !== '/')
      open.push({ tag, testCase, result: isResult ? results.length - 1 : undefined, failed });
    else if (failed && around) around.failed = true;
  }
  if (open.length > 0) throw new ParserError(`the doctest report leaves <${open.at(-1)!.tag}> open`);
  for (const { name, failed } of results) found.set(name, failed ? 'FAILED' : 'PASSED');
  return found;
};
