// Builds the page into dist/viewer/page: a script, one that is loaded later and a style with fixed names, so that a static bundle and a
// single file can be made from it by renaming nothing.
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { defineConfig, type Plugin } from 'vite';

/** A script of its own, which shares no module with the page: a file that holds one run can then have both inside. */
const libraries: Plugin = {
  name: 'libraries',
  async generateBundle() {
    const build = await rolldown({ input: join(import.meta.dirname, 'later', 'libraries.ts') });
    const made = await build.generate({
      format: 'iife',
      name: 'swebatchLater',
      minify: true,
      comments: false,
    });
    await build.close();
    this.emitFile({ type: 'asset', fileName: 'assets/later.js', source: made.output[0].code });
  },
};

export default defineConfig({
  root: import.meta.dirname,
  base: './',
  logLevel: 'warn',
  plugins: [libraries],
  // Said outright, since a NODE_ENV around the build (a test's) would otherwise mix development code into a production page.
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
  define: { 'process.env.NODE_ENV': '"production"' },
  build: {
    outDir: join(import.meta.dirname, '..', '..', '..', 'dist', 'viewer', 'page'),
    emptyOutDir: true,
    target: 'es2023',
    modulePreload: false,
    assetsInlineLimit: 100_000,
    chunkSizeWarningLimit: 2000,
    rolldownOptions: {
      // 'use client' is a hint for server frameworks; a page in a browser is all client.
      onLog: (level, log, handle) => log.code === 'MODULE_LEVEL_DIRECTIVE' || handle(level, log),
      output: {
        codeSplitting: false,
        entryFileNames: 'assets/viewer.js',
        assetFileNames: 'assets/viewer[extname]',
      },
    },
  },
});
