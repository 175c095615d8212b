// Preloaded into the program: some time after the start its wall clock jumps by CLOCK_JUMP_MS. The monotonic clock goes on.
const jump = Number(process.env.CLOCK_JUMP_MS);
const Real = globalThis.Date;
let shift = 0;
// Among all processes that inherit the option only swebatch itself is meant.
if (process.argv[1]?.endsWith('bin.ts')) {
  const after = Number(process.env.CLOCK_JUMP_AFTER_MS);
  console.error(`clock jumped by ${jump} ms ${after} ms after the start`);
  setTimeout(() => {
    shift = jump;
  }, after).unref();
}
globalThis.Date = class extends Real {
  constructor(...args) {
    super(...(args.length === 0 ? [Real.now() + shift] : args));
  }
  static now() {
    return Real.now() + shift;
  }
};
