#!/usr/bin/env node
// The entry point. No static import: on an old Node the database driver would end the process without a word, so the version
// is checked before anything else is loaded.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `swebatch needs Node 22.19 or newer; this is ${process.versions.node}.\n` +
      'Inside a checkout "npm run swebatch -- ..." or "npx swebatch ..." uses the Node 24 that the project brings; elsewhere install Node 24.\n',
  );
  process.exitCode = 2;
} else {
  await tuneFor(process.argv[2]);
  await keepCode();
  const { crashed, main } = await import('./main.ts');
  process.on('uncaughtException', crashed);
  process.exitCode = await main(process.argv.slice(2));
  const { closeConnections } = await import('./verbs.ts');
  closeConnections();
}

/** A third of the start of the program is compiling. The compiled code is kept beside the program, where that may be written. */
async function keepCode(): Promise<void> {
  if (!import.meta.filename.endsWith('.js')) return;
  const { enableCompileCache } = await import('node:module');
  enableCompileCache(`${import.meta.dirname}/../../.cache/code`);
}

/** A verb that works for hours takes little memory; one that answers a question meanwhile takes little time. */
async function tuneFor(verb: string | undefined): Promise<void> {
  if (verb === 'ls') {
    // Asked while a night fills every core: of 700 ms most were waiting for a turn (`npm run test:long`). Where the system
    // does not allow it, it answers all the same.
    const { constants, setPriority } = await import('node:os');
    try {
      setPriority(constants.priority.PRIORITY_HIGH);
    } catch {}
  } else if (process.argv.includes('--dry-run')) {
    // A row of a dataset is read, hashed and forgotten. Half a million are planned in 285 MB instead of 470, in 1.3 times the processor time
    // (`npm run bench:size`).
    const { setFlagsFromString } = await import('node:v8');
    setFlagsFromString('--semi-space-growth-factor=1');
    setFlagsFromString('--heap-growing-percent=20');
  } else if (verb === 'compare') {
    // V8 lets garbage pile up to a multiple of what is used. Two runs of 50,000 trials are compared in 390 MB instead of 520
    // (`npm run bench:size`). A run does so once it knows that its slots are many.
    const { setFlagsFromString } = await import('node:v8');
    setFlagsFromString('--semi-space-growth-factor=1');
    setFlagsFromString('--heap-growing-percent=60');
  }
}

export {};
