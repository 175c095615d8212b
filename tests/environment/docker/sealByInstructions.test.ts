// A sealed image is found by its labels, also on an engine that ignores the body of a commit (Podman 4).
import type Docker from 'dockerode';
import { expect, test } from 'vitest';
import { commitInstructions, createSealer, type SealRoom } from '../../../src/environment/docker/seal.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';

interface Commit {
  readonly _query: { readonly changes?: string };
  readonly _body: { readonly Labels: Readonly<Record<string, string>> };
}

/** An engine in memory: `reads` says where it takes the labels of a commit from. */
function fakeEngine(reads: 'body' | 'changes') {
  const commits: Commit[] = [];
  const removed: string[] = [];
  let sealed: Record<string, string> | undefined;
  const labelsOf = ({ _query, _body }: Commit) =>
    reads === 'body'
      ? _body.Labels
      : Object.fromEntries(
          [...(_query.changes ?? '').matchAll(/^LABEL "(.*)"="(.*)"$/gm)].map((m) => [m[1], m[2]]),
        );
  const docker = {
    getImage: (name: string) => ({
      async inspect() {
        if (name === 'source') return { Id: 'source', Config: { Cmd: ['bash'] } };
        if (!sealed) throw Object.assign(new Error('no such image'), { statusCode: 404 });
        return { Id: 'made', Config: { Labels: sealed } };
      },
      remove: async () => void removed.push(name),
    }),
  } as unknown as Docker;
  const room = {
    container: {
      handle: {
        id: 'c',
        async commit(options: Commit) {
          commits.push(options);
          sealed = { ...labelsOf(options) } as Record<string, string>;
          return { Id: `image-${commits.length}` };
        },
      },
      remove: async () => undefined,
    },
    channel: {
      harness: async () => ({ output: `sealed abc\ntree ${'a'.repeat(40)}\nfolder /start\n`, code: 0 }),
      killAll: async () => undefined,
      close: () => undefined,
    },
  } as unknown as SealRoom;
  const facts = { id: 'source', digest: 'repo@sha256:1', architecture: 'amd64' };
  const seal = () =>
    createSealer(docker).seal(facts as never, environmentConfigSchema.parse({}), async () => room);
  return { seal, commits, removed };
}

test('an engine that reads the body commits once, and hears no instruction', async () => {
  const { seal, commits, removed } = fakeEngine('body');
  expect(await seal()).toMatchObject({ state: 'sealed', image: 'made', fingerprint: 'abc' });
  expect(commits.map(({ _query }) => _query.changes)).toEqual([undefined]);
  expect(removed).toEqual([]);
});

test('one that ignores it is told the same as instructions, and the image without labels is removed', async () => {
  const { seal, commits, removed } = fakeEngine('changes');
  expect(await seal()).toMatchObject({ state: 'sealed', image: 'made', fingerprint: 'abc' });
  expect(commits).toHaveLength(2);
  expect(removed).toEqual(['image-1']);
});

test('a value stays one value: quotes, line ends and variables are no instructions', () => {
  const text = commitInstructions({ Labels: { a: 'x"\nCMD ["evil"]', b: '$HOME', c: '' } });
  expect(text.split('\n')).toEqual([
    'ENTRYPOINT []',
    String.raw`LABEL "a"="x\"\nCMD [\"evil\"]"`,
    String.raw`LABEL "b"="\$HOME"`,
    'LABEL "c"=""',
  ]);
});
