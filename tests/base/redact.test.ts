// Secrets are found in the forms in which tools print them.

import { describe, expect, test } from 'vitest';
import { createRedactor, redactor as withoutKeys } from '../../src/base/text/redact.ts';
import fc from '../support/property.ts';

const KEY = 'sk-ca/nary+"42"!-Zß';
const redactor = () => createRedactor([{ name: 'OPENAI_API_KEY', value: KEY }]);

describe('redaction', () => {
  test.each([
    ['plain', KEY],
    ['URL-encoded', encodeURIComponent(KEY)],
    ['JSON-escaped', JSON.stringify({ k: KEY })],
    ['base64', Buffer.from(KEY).toString('base64')],
    ['base64url', Buffer.from(KEY).toString('base64url')],
  ])('%s form is replaced', (_name, form) => {
    const out = redactor().text(`before ${form} after`);
    expect(out).toContain('‹redacted:OPENAI_API_KEY›');
    expect(out).not.toContain(form);
  });

  test('base64 of a longer text around the key, at every offset [T-58]', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 9 }), fc.string({ maxLength: 9 }), (before, after) => {
        const encoded = Buffer.from(`${before}${KEY}${after}`).toString('base64');
        expect(redactor().text(encoded)).toContain('redacted');
      }),
    );
  });

  const LONG = `sk-proj-${'aB3+/xYz'.repeat(19)}`;
  const long = () => createRedactor([{ name: 'LONG', value: LONG }]);
  const wrapped = (width: number, lineBreak = '\n') =>
    Buffer.from(`PATH=/bin\nKEY=${LONG}\nHOME=/`)
      .toString('base64')
      .replaceAll(new RegExp(`.{${width}}`, 'g'), `$&${lineBreak}`);

  test.each([
    ['as base64 prints it', wrapped(76)],
    ['as openssl prints it', wrapped(64)],
    ['in narrow lines with carriage returns', wrapped(30, '\r\n')],
    ['indented, in YAML', wrapped(76, '\n    ')],
    ['inside JSON', JSON.stringify({ output: wrapped(76) })],
    ['inside JSON inside JSON', JSON.stringify({ arguments: JSON.stringify({ text: wrapped(64) }) })],
  ])('a long key whose base64 is broken into lines, %s, is replaced [T-58]', (_name, text) => {
    expect(long().contains(text)).toBe(true);
    const out = long().text(text);
    expect(out).toContain('‹redacted:LONG›');
    // No piece of it stays: what is left are the lines around it.
    const core = Buffer.from(LONG).toString('base64').slice(4, -4);
    for (let at = 0; at + 10 <= core.length; at += 5) expect(out).not.toContain(core.slice(at, at + 10));
  });

  test.each([
    ['JSON inside JSON inside JSON', JSON.stringify({ a: JSON.stringify({ b: JSON.stringify([KEY]) }) })],
    ['JSON in ASCII, as Python writes it', JSON.stringify(KEY).replace('ß', '\\u00df')],
    ['a password with every mark, quoted as Python does', encodeURIComponent(KEY).replace('!', '%21')],
    ['URL-encoded in small digits', encodeURIComponent(KEY).replaceAll(/%../g, (c) => c.toLowerCase())],
    ['JSON with escaped slashes', JSON.stringify(KEY).replaceAll('/', '\\/')],
  ])('%s', (_name, text) => {
    expect(redactor().text(text)).toContain('‹redacted:OPENAI_API_KEY›');
  });

  test('a key of several lines, as a certificate has them', () => {
    const pem = '-----BEGIN KEY-----\nabc/def+ghi\n-----END KEY-----\n';
    const { text } = createRedactor([{ name: 'PEM', value: pem }]);
    for (const form of [pem, pem.trim(), pem.replaceAll('\n', '\r\n'), JSON.stringify(JSON.stringify(pem))])
      expect(text(`x${form}y`)).not.toContain('def+ghi');
  });

  test('in bytes the mark is the same as in text, and what is around it stays as it is', () => {
    const before = Buffer.from([0xff, 0x00]);
    const out = redactor().bytes(Buffer.concat([before, Buffer.from(`ü ${KEY} ü`), before]));
    expect(Buffer.from(out)).toEqual(
      Buffer.concat([before, Buffer.from('ü ‹redacted:OPENAI_API_KEY› ü'), before]),
    );
  });

  test('bytes that hold no secret come back as the same object', () => {
    const bytes = Buffer.from([0, 255, 10]);
    expect(redactor().bytes(bytes)).toBe(bytes);
  });

  // Display takes these out, and the key is whole again.
  const LITERAL = [...KEY].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
  const split = (between: string) => KEY.replace('ry', `r${between}y`);
  const DISGUISES: readonly (readonly [string, string])[] = [
    ['a colour inside', split('\x1b[31m')],
    ['a title inside', split('\x1b]0;title\x07')],
    ['a short sequence inside', split('\x1b(B')],
    ['an 8-bit sequence inside', split('\x9b1;2m')],
    ['a NUL and a carriage return inside', split('\0\r')],
    ['spaces without width inside', [...KEY].join('\u200b')],
    ['hidden tags inside', split('\u{e0041}\u{e007f}')],
    ['literal escapes of all characters', LITERAL],
    ['a literal escape sequence inside', split('\\u001b[31m')],
    ['a literal escape sequence inside, as Python writes it', split('\\x1b[31m')],
    ['a literal escape sequence inside, two levels deep', split('\\\\u001b[1;31m')],
  ];
  test.each(DISGUISES)('%s: nothing of the key stays', (_name, form) => {
    for (const out of [
      redactor().text(`before ${form} after`),
      Buffer.from(redactor().bytes(Buffer.from(`before ${form} after`))).toString(),
    ])
      expect(out).toBe('before ‹redacted:OPENAI_API_KEY› after');
    const json = JSON.stringify({ output: `before ${form} after`, arguments: JSON.stringify({ c: form }) });
    expect(JSON.parse(redactor().json(json))).toEqual({
      output: 'before ‹redacted:OPENAI_API_KEY› after',
      arguments: '{"c":"‹redacted:OPENAI_API_KEY›"}',
    });
    expect(withoutKeys([KEY])(`before ${form} after`)).toBe('before [key] after');
  });
  test('in bytes that are no UTF-8 as well', () => {
    const bytes = Buffer.concat([Buffer.from(' sk-canary-\x1b[0m1234567 '), Buffer.from([0xff])]);
    const clean = createRedactor([{ name: 'K', value: 'sk-canary-1234567' }]).bytes(bytes);
    expect(Buffer.from(clean)).toEqual(Buffer.concat([Buffer.from(' ‹redacted:K› '), Buffer.from([0xff])]));
  });
  test('what holds no key keeps its colours, its literals and its signs', () => {
    const text = '\x1b[31mred\x1b[0m \\u0041 \\x41 \\\\ \u200b \x1b]0;t\x07 \u{e0041} 🎉\x1b[\r\n';
    expect(redactor().text(text)).toBe(text);
    expect(redactor().text(`${text}${KEY}${text}${split('\x1b[m')}${text}`)).toBe(
      `${text}‹redacted:OPENAI_API_KEY›${text}‹redacted:OPENAI_API_KEY›${text}`,
    );
    expect(redactor().contains(text)).toBe(false);
  });

  test('short values are not secrets: they would hit ordinary words', () => {
    expect(createRedactor([{ name: 'A', value: 'yes' }]).text('yes, eyes')).toBe('yes, eyes');
  });
});

describe('redaction of JSON', () => {
  const word = () => createRedactor([{ name: 'WORD', value: 'content' }]);
  test('changes values and never keys, numbers or white space', () => {
    const text = '{"content" : "the content",\n "n": 1.0, "list":["content"], "e":"\\u0041"}';
    expect(word().json(text)).toBe(
      '{"content" : "the ‹redacted:WORD›",\n "n": 1.0, "list":["‹redacted:WORD›"], "e":"\\u0041"}',
    );
  });
  test('also of JSON inside JSON', () => {
    const inner = JSON.stringify({ content: 'some content', more: [JSON.stringify({ content: 'content' })] });
    const clean = JSON.parse(word().json(JSON.stringify({ arguments: inner }))) as { arguments: string };
    expect(JSON.parse(clean.arguments)).toEqual({
      content: 'some ‹redacted:WORD›',
      more: ['{"content":"‹redacted:WORD›"}'],
    });
  });
  test('a secret that is JSON itself is found where it stands as a text', () => {
    const account = '{"type":"service_account","private_key":"abcdefgh"}';
    const { json } = createRedactor([{ name: 'ACCOUNT', value: account }]);
    expect(json(JSON.stringify({ output: account }))).toBe('{"output":"‹redacted:ACCOUNT›"}');
    expect(json(JSON.stringify({ output: `[${account}]` }))).not.toContain('abcdefgh');
  });
  test('whatever JSON it is given, what comes out is JSON of the same form', () => {
    const hide = (value: unknown): unknown =>
      typeof value === 'string'
        ? value.replaceAll('aaaaaa', '')
        : Array.isArray(value)
          ? value.map(hide)
          : value !== null && typeof value === 'object'
            ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, hide(inner)]))
            : value;
    const { json } = createRedactor([{ name: 'A', value: 'aaaaaa' }]);
    fc.assert(
      fc.property(fc.json({ stringUnit: fc.constantFrom('aaaaaa', '"', '\\', ':', 'x') }), (text) => {
        const out = JSON.parse(json(text).replaceAll('‹redacted:A›', '')) as unknown;
        const isText = typeof out === 'string';
        if (!isText) expect(out).toEqual(hide(JSON.parse(text)));
      }),
    );
  });
});
