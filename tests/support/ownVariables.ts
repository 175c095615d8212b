// Files of one project share a process, one after the other. Each begins with the variables and the clock that the first one had.
import { vi } from 'vitest';

const here = globalThis as { variablesAtFirst?: Readonly<Record<string, string | undefined>> };
here.variablesAtFirst ??= { ...process.env };
const first = here.variablesAtFirst;

const ofVitest = (name: string): boolean => name.startsWith('VITEST');
for (const name of Object.keys(process.env))
  if (!(name in first) && !ofVitest(name)) delete process.env[name];
for (const [name, value] of Object.entries(first)) if (!ofVitest(name)) process.env[name] = value;
vi.useRealTimers();
