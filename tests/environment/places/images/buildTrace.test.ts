// Builds by BuildKit: which files need it, and what its messages say.
import { describe, expect, test } from 'vitest';
import { needsBuildKit, traceText } from '../../../../src/environment/places/buildImage.ts';

describe('a Dockerfile', () => {
  test.each([
    'RUN --mount=type=cache,target=/root/.cache pip install x',
    '  run --network=none make',
    'COPY --from=build --link /a /b',
    'COPY --chmod=755 a /b',
    'RUN <<EOF\necho\nEOF',
    "FROM a\nCOPY <<'EOF' /etc/x\nb\nEOF",
  ])('%j needs BuildKit', (text) => expect(needsBuildKit(text)).toBe(true));

  test.each([
    'FROM a\nRUN make',
    'COPY --from=build /a /b',
    'COPY --chown=1:1 a /b',
    'RUN tool --mount=x',
    'RUN echo $((1 << 2))',
    '# syntax=docker/dockerfile:1\nFROM a',
    '# RUN --mount=type=tmpfs,target=/x make',
    '',
  ])('%j does not', (text) => expect(needsBuildKit(text)).toBe(false));
});

/** A field of a message: a text, or a message of fields. */
const field = (id: number, value: string | Buffer): Buffer => {
  const bytes = Buffer.from(value);
  expect(bytes.length).toBeLessThan(16_384);
  return Buffer.concat([Buffer.from([id * 8 + 2, (bytes.length & 127) | 128, bytes.length >> 7]), bytes]);
};
const status = (...parts: Buffer[]) => Buffer.concat(parts).toString('base64');

describe('messages of BuildKit', () => {
  test('one that an engine sent: a step that begins', () => {
    expect(
      traceText(
        'Cn0KR3NoYTI1NjowNDk2MjQ0MGRkMWMyZjMzMzlmNDA5MjI2ZjQxNTk0NTg1NWNkNTBkYmEwY2E4YWFkYjhmMGI0NDQzMGFlYmMyGiRbaW50ZXJuYWxdIGxvYWQgcmVtb3RlIGJ1aWxkIGNvbnRleHQqDAjKsY/YBhDOyN3cAg==',
      ),
    ).toBe('[internal] load remote build context\n');
  });

  test('output of commands comes as it is, errors are told, and what has ended is not told again', () => {
    const log = field(3, Buffer.concat([field(1, 'sha'), Buffer.from([0x18, 1]), field(4, 'made it\nü\n')]));
    const failed = field(
      1,
      Buffer.concat([field(3, 'RUN x'), field(5, ''), field(6, ''), field(7, 'exit code: 7')]),
    );
    const ended = field(1, Buffer.concat([field(3, 'RUN y'), field(5, ''), field(6, '')]));
    expect(traceText(status(log, failed, ended))).toBe('made it\nü\nexit code: 7\n');
  });

  test.each(['', '####', 'Cn0', '/////w==', status(Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f]))])(
    '%j says nothing, and breaks nothing',
    (text) => expect(traceText(text)).toBe(''),
  );
});
