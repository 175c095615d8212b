// The tutorial and the page on an own dataset, followed as a person follows them: each line of their blocks is run, on real containers.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { BASE_IMAGE } from '../../src/demo/baseImage.ts';
import { REPO } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { pageOf, saidBy } from '../support/program/followPage.ts';
import { docker } from '../support/program/programImage.ts';

const engine = await dockerAvailable();

/** The first block of that kind. */
const block = (text: string, kind: string) =>
  new RegExp(`^\`\`\`${kind}\\n(.*?)^\`\`\`$`, 'ms').exec(text)![1]!;

test('the row of the README is the row of the page', () => {
  const readme = readFileSync(join(REPO, 'README.md'), 'utf8');
  expect(block(readme, 'json')).toBe(block(pageOf('own-dataset.md').text, 'json'));
});

describe.skipIf(!engine)('with Docker', () => {
  test('the tutorial', () => {
    const { follow } = pageOf('tutorial.md');
    const said = follow('sh docker');
    expect(saidBy(said, 'report one').stdout).toMatch(/resolved +3\/4 = 75\.0 % \[30\.1, 95\.4\]/);
    expect(saidBy(said, 'show one').stdout).toContain('should pass now and does not (3)');
    expect(saidBy(said, 'compare one two').stdout).toMatch(/matched +4/);
    expect(saidBy(said, '--config').stdout).toContain('step_limit');
  });

  test('a dataset of your own: its image, its row, its gold patch', () => {
    const { text, home, follow } = pageOf('own-dataset.md');
    // No registry can be reached from here, so the image stands on the base of the demo, which has git and pytest.
    const dockerfile = block(text, 'dockerfile').replace(
      /^FROM .*\nRUN apt-get .*\n/,
      `FROM ${BASE_IMAGE}\n`,
    );
    expect(dockerfile).toContain(BASE_IMAGE);
    writeFileSync(join(home, 'Dockerfile'), dockerfile);
    writeFileSync(join(home, 'mine.jsonl'), block(text, 'json'));
    try {
      const said = follow('sh docker');
      expect(saidBy(said, 'datasets check').stdout).toContain('1 can be graded');
      expect(saidBy(said, 'evaluate gold').stdout).toMatch(/resolved +1\/1/);
    } finally {
      docker('rmi', '-f', 'acme/calc:1');
    }
  });
});
