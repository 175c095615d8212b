// What a person sees of a package that comes: a bar on a terminal, lines elsewhere.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { fetchProgress } from '../../src/cli/terminal/fetchProgress.ts';

const MB = 1_000_000;
const NAME = '@openai/codex@0.169.0-linux-x64';
let written = '';

beforeEach(() => {
  written = '';
  vi.stubEnv('CI', undefined);
  vi.useFakeTimers();
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    written += text;
    return true;
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  onTerminal(undefined);
});

function onTerminal(isTTY: boolean | undefined): void {
  Object.defineProperty(process.stderr, 'isTTY', { value: isTTY, configurable: true, writable: true });
}

test('a terminal shows a bar as soon as the size is known, and nothing of it stays', () => {
  onTerminal(true);
  const progress = fetchProgress();
  progress.show(NAME, MB);
  expect(written).toContain(`${NAME}: 1 MB so far`);
  written = '';
  progress.show(NAME, 42 * MB, 168 * MB);
  vi.advanceTimersByTime(500);
  expect(written).toMatch(/@openai\/codex@0\.169\.0-linux-x64 █{6}░{18} 25 % {2}42 of 168 MB/);
  progress.show(NAME, 169 * MB, 168 * MB);
  vi.advanceTimersByTime(500);
  expect(written).toContain('100 %  168 of 168 MB');
  written = '';
  progress.clear();
  expect(written).toMatch(/\x1b\[2K$/);
});

test('elsewhere there is a line every ten seconds, and none of its bytes steers a terminal', () => {
  onTerminal(false);
  const progress = fetchProgress();
  progress.show(NAME, MB, 168 * MB);
  expect(written).toBe('');
  vi.advanceTimersByTime(10_000);
  progress.show(NAME, 84 * MB, 168 * MB);
  expect(written).toBe(`${NAME}: 84 of 168 MB\n`);
});

test('a registry that sends nothing any more is told about', () => {
  onTerminal(false);
  const progress = fetchProgress();
  progress.show(NAME, 5 * MB);
  vi.advanceTimersByTime(20_000);
  progress.show(NAME, 5 * MB);
  expect(written).toBe(`${NAME}: 5 MB so far, nothing came for 20 s\n`);
});
