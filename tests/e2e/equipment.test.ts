// With and without a skill: one configuration, two arms, compared as pairs.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const docker = await dockerAvailable();
const IDS = ['swebatch__tabular-23', 'swebatch__cronwheel-27'];

describe.skipIf(!docker)('configs/demo-skill.yaml (needs Docker)', () => {
  test('runs the demo with and without its skill, and compare reads it as a paired experiment', async () => {
    const out = tempDir();
    const { code, stderr } = await cli([
      ...['run', '-c', 'demo', '-c', 'demo-skill', '-i', IDS.join(','), '-o', out, '--run-id', 'skill'],
      ...['--evaluate', '--model-latency', '0'],
    ]);
    expect(code, stderr).toBe(0);
    const manifest = JSON.parse((await cli(['show', 'skill', '--manifest', '-o', out])).stdout);
    expect(Object.keys(manifest.equipment)).toEqual(['with-skill']);
    expect(manifest.equipment['with-skill'].skills).toMatchObject({
      names: ['reproduce-first'],
      files: [{ path: 'reproduce-first/SKILL.md', sha256: expect.any(String), bytes: expect.any(Number) }],
    });
    const folder = (arm: string) => join(out, 'skill', arm, 'epoch-1');
    const said = (arm: string, id: string): string =>
      readFileSync(join(folder(arm), 'trajectories', id, `${id}.traj.json`), 'utf8');
    for (const id of IDS) {
      expect(said('plain', id)).not.toContain('reproduce-first');
      expect(said('with-skill', id)).toContain(
        '(/opt/swebatch-equipment/skills/reproduce-first/SKILL.md)\\n</skills>',
      );
    }
    // Nothing of it is in a patch.
    const preds = (arm: string) => readFileSync(join(folder(arm), 'preds.json'), 'utf8');
    expect(preds('with-skill')).toBe(preds('plain'));
    const compared = await cli(['compare', 'skill/plain', 'skill/with-skill', '-o', out]);
    expect(compared.stdout).not.toContain('NOT THE SAME CONDITIONS');
    expect(compared.stdout.replace(/\s+/g, ' ')).toContain(
      'What the arms give their agents differs (skills: A none, B its own). The conditions are otherwise the same: this is a paired experiment about that.',
    );
  });
});
