// Agents come from the registry that npm is set to, by the hash that it names; what differs from it is never kept.
import { appendFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { addedAgents, cachedProgram } from '../../../src/run/agents/agentCache.ts';
import { addAgent, listAgents, removeAgent, verifyAgents } from '../../../src/run/agents/installedAgents.ts';
import {
  type FakeRegistry,
  fakeRegistry,
  integrityOf,
  type Published,
  packed,
} from '../../support/agents/packages.ts';

const ARCH = process.arch;
const bytes = await packed([{ name: 'package/bin/demo', content: 'demo', mode: 0o755 }]);
const others = await packed([{ name: 'package/bin/demo', content: 'musl' }]);

const codex: Published = {
  name: '@openai/codex',
  version: `1.2.3-linux-${ARCH}`,
  bytes,
  licence: 'Apache-2.0',
};
const claude = (more: Partial<Published> = {}): Published[] => [
  { name: `@anthropic-ai/claude-code-linux-${ARCH}`, version: '2.0.0', bytes, ...more },
  { name: `@anthropic-ai/claude-code-linux-${ARCH}-musl`, version: '2.0.0', bytes: others, ...more },
];

describe('agents from a registry', () => {
  let registry: FakeRegistry | undefined;
  afterEach(() => registry?.close());

  async function around(published: readonly Published[]) {
    registry = await fakeRegistry(published);
    const dir = mkdtempSync(join(tmpdir(), 'agents-'));
    const said: string[] = [];
    const { PATH } = process.env;
    const env = {
      PATH,
      HOME: dir,
      XDG_CACHE_HOME: dir,
      npm_config_registry: registry.url,
      npm_config_fetch_retries: '0',
      DOCKER_HOST: 'tcp://127.0.0.1:1',
    };
    return {
      ...{ said, registry, cache: join(dir, 'swebatch', 'agents') },
      caller: { env, cwd: dir, tell: ({ text }: { text: string }) => void said.push(text) },
    };
  }

  test('one is fetched once, listed with its licence, found whole and removed', async () => {
    const { caller, cache, registry: served } = await around([codex]);
    const added = await addAgent('codex@1.2.3', caller);
    expect(added.variants).toEqual([
      {
        libc: null,
        packages: [
          {
            name: '@openai/codex',
            version: `1.2.3-linux-${ARCH}`,
            integrity: integrityOf(bytes),
            licence: 'Apache-2.0',
            folder: 'codex',
            bytes: bytes.length,
          },
        ],
      },
    ]);
    await addAgent('codex@1.2.3', caller);
    expect(served.fetched).toHaveLength(1);
    expect((await listAgents(caller)).map(({ agent, version }) => `${agent}@${version}`)).toEqual([
      'codex@1.2.3',
    ]);
    expect((await verifyAgents(undefined, caller)).map(({ problems }) => problems)).toEqual([[]]);
    const [removed] = await removeAgent('codex', caller);
    expect(removed).toEqual({ agent: 'codex@1.2.3', volumes: [], inUse: [] });
    expect(await addedAgents(cache)).toEqual([]);
    expect(readdirSync(join(cache, 'packages'))).toEqual([]);
  });

  test('what was published for one C library only is added for that one', async () => {
    const { caller, said } = await around([claude()[0]!]);
    const added = await addAgent('claude-code@2.0.0', caller);
    expect(added.variants.map(({ libc }) => libc)).toEqual(['glibc']);
    expect(added.variants[0]!.packages[0]!.licence).toBe("Anthropic's commercial terms");
    expect(said).toContain('claude-code@2.0.0 is not published for musl');
    await expect(addAgent('claude-code@9.9.9', caller)).rejects.toThrow(
      /the registry has no claude-code@9.9.9/,
    );
  });

  test('bytes that are not the hash of the registry are not kept', async () => {
    const { caller, cache } = await around([{ ...codex, integrity: integrityOf(others) }]);
    await expect(addAgent('codex@1.2.3', caller)).rejects.toThrow(
      /EINTEGRITY|not what the registry describes/,
    );
    expect(await addedAgents(cache)).toEqual([]);
    expect(readdirSync(cache)).toEqual([]);
  });

  test('a package without a sha512 hash is refused', async () => {
    const { caller } = await around([{ ...codex, integrity: 'sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=' }]);
    await expect(addAgent('codex@1.2.3', caller)).rejects.toThrow(/no sha512 hash/);
  });

  test('a damaged and a missing package are told', async () => {
    const { caller, cache } = await around(claude());
    const added = await addAgent('claude-code@2.0.0', caller);
    const program = cachedProgram(cache, added);
    const files = program.variants.map(({ packages }) => packages[0]!.file);
    appendFileSync(files[0]!, 'x');
    rmSync(files[1]!);
    const [check] = await verifyAgents('claude-code', caller);
    expect(check!.problems).toEqual([
      `@anthropic-ai/claude-code-linux-${ARCH}@2.0.0 is damaged`,
      `@anthropic-ai/claude-code-linux-${ARCH}-musl@2.0.0 is missing`,
    ]);
  });

  test.each([
    'codex',
    'codex@latest',
    'codex@^1.0.0',
    'codex@1.2.3;ls',
    'nobody@1.0.0',
    'codex@--registry=x',
  ])('%s is no agent with its version', async (spec) => {
    const { caller, registry: served } = await around([codex]);
    await expect(addAgent(spec, caller)).rejects.toThrow(/names no agent with its version/);
    expect(served.fetched).toEqual([]);
  });

  test('a package that two agents share stays until the last of them goes', async () => {
    const { caller, cache } = await around([...claude({ bytes }), ...claude({ bytes, version: '2.0.1' })]);
    await addAgent('claude-code@2.0.0', caller);
    await addAgent('claude-code@2.0.1', caller);
    await removeAgent('claude-code@2.0.0', caller);
    expect((await verifyAgents(undefined, caller)).map(({ problems }) => problems)).toEqual([[]]);
    await removeAgent('claude-code@2.0.1', caller);
    expect(readdirSync(join(cache, 'packages'))).toEqual([]);
  });
});
