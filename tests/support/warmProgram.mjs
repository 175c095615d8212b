// The built program, command after command in one process: what it loads is loaded once. Started by cli.ts, which sends the lines. A word names
// another program than that of this checkout.
const BIN = process.argv[2] ?? new URL('../../dist/cli/bin.js', import.meta.url).href;
const started = process.listeners('uncaughtException');
let count = 0;

process.on('message', async ({ args, env, cwd }) => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  process.argv = [process.argv[0], 'swebatch', ...args];
  process.exitCode = 0;
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'])
    process[name].write = (chunk, ...more) => {
      said[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
      more.find((one) => typeof one === 'function')?.();
      return true;
    };
  count += 1;
  // Only this file is run again; all that it imports is there.
  await import(`${BIN}?${count}`);
  for (const listener of process.listeners('uncaughtException'))
    if (!started.includes(listener)) process.off('uncaughtException', listener);
  process.send({ code: process.exitCode ?? 0, signal: null, ...said });
});
process.on('disconnect', () => process.exit(0));
