// An engine that takes questions and never answers is told, and not waited for without an end.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { engineFacts, engineInfo } from '../../../../src/environment/places/engineInfo.ts';

const BROKEN = '{"message":"broken"}';
let dir: string;
let server: Server;
let socketPath: string;
let answer: string | null;
let asked: number;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-engine-'));
  socketPath = join(dir, 'docker.sock');
  asked = 0;
  server = createServer((_request, response) => {
    asked++;
    response.statusCode = answer === BROKEN ? 500 : 200;
    if (answer !== null) response.setHeader('content-type', 'application/json').end(answer);
  });
  await new Promise<void>((listening) => server.listen(socketPath, listening));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
  rmSync(dir, { recursive: true, force: true });
});

test('an engine that hangs is one that does not answer, with the time that it had', async () => {
  answer = null;
  const docker = new Docker({ socketPath });
  const said = 'the Docker daemon took the request and gave no answer within 0.05 s';
  expect(await engineInfo(docker, { answerMs: 50 })).toEqual({ ok: false, message: said });
});

test('one that answers is known by its facts', async () => {
  answer = JSON.stringify({ ServerVersion: '99.1', Driver: 'overlay2', NCPU: 2 });
  expect(await engineInfo(new Docker({ socketPath }))).toMatchObject({ ok: true, version: '99.1', cpus: 2 });
});

test('all that a run wants to know of an engine is one question, until somebody asks whether it is still there', async () => {
  answer = JSON.stringify({ ServerVersion: '99.1' });
  const client = () => new Docker({ socketPath });
  const both = await Promise.all([engineInfo(client()), engineInfo(client()), engineFacts(client())]);
  expect(both[1]).toEqual(both[0]);
  await engineInfo(client());
  expect(asked).toBe(1);
  answer = JSON.stringify({ ServerVersion: '99.2' });
  expect(await engineInfo(client(), { again: true })).toMatchObject({ version: '99.2' });
  expect(await engineInfo(client())).toMatchObject({ version: '99.2' });
  expect(asked).toBe(2);
});

test('what was no answer is not kept', async () => {
  answer = BROKEN;
  expect(await engineInfo(new Docker({ socketPath }))).toMatchObject({ ok: false });
  answer = JSON.stringify({ ServerVersion: '99.1' });
  expect(await engineInfo(new Docker({ socketPath }))).toMatchObject({ ok: true });
});
