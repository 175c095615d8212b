// Which engine the program talks to: contexts and DOCKER_HOST reach every verb that needs containers, and no other.
import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { cli, tempDir } from '../support/cli.ts';

let dir: string;
beforeEach(() => {
  dir = tempDir('swebatch-engine-');
});
afterEach(() => rmSync(dir, { recursive: true }));

function context(name: string, host: string): void {
  const folder = join(dir, 'contexts', 'meta', createHash('sha256').update(name).digest('hex'));
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'meta.json'),
    JSON.stringify({ Name: name, Endpoints: { docker: { Host: host } } }),
  );
}

test('the current context decides which socket is asked', async () => {
  const socket = join(dir, 'lab.sock');
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url!);
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({
        ServerVersion: '99.1',
        Driver: 'lab',
        Architecture: 'x86_64',
        OSType: 'linux',
        ID: 'L',
      }),
    );
  });
  await new Promise<void>((done) => server.listen(socket, done));
  try {
    context('lab', `unix://${socket}`);
    writeFileSync(join(dir, 'config.json'), JSON.stringify({ currentContext: 'lab' }));
    const doctor = await cli(['doctor'], { env: { DOCKER_CONFIG: dir } });
    expect(doctor.stdout + doctor.stderr).toContain('99.1');
    expect(asked).toContain('/info');
    const direct = await cli(['doctor'], {
      env: { DOCKER_CONFIG: dir, DOCKER_HOST: 'unix:///nowhere.sock' },
    });
    expect(direct.stdout + direct.stderr).toContain('/nowhere.sock');
  } finally {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
});

test('a context that does not exist stops what needs an engine, exit 2, and nothing else', async () => {
  const env = { DOCKER_CONFIG: dir, DOCKER_CONTEXT: 'gone' };
  expect(await cli(['images', 'ls'], { env })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('"gone"'),
  });
  expect(await cli(['doctor'], { env })).toMatchObject({
    code: 2,
    // With what else it found, and with the fix.
    stdout: expect.stringMatching(/FAIL Docker: .*docker context ls.*\nok {3}disk/s),
  });
  expect(await cli(['datasets', 'ls'], { env })).toMatchObject({ code: 0 });
});
