// Preloaded into the program: its wall clock jumps by CLOCK_JUMP_MS once the file CLOCK_JUMP_AT is there. The monotonic clock goes on.
import { existsSync } from 'node:fs';

const jump = Number(process.env.CLOCK_JUMP_MS);
const Real = globalThis.Date;
let shift = 0;
// Among all processes that inherit the option only swebatch itself is meant.
if (process.argv[1]?.endsWith('bin.js')) {
  const look = setInterval(() => {
    if (!existsSync(process.env.CLOCK_JUMP_AT)) return;
    clearInterval(look);
    shift = jump;
    console.error(`clock jumped by ${jump} ms`);
  }, 20);
  look.unref();
}
globalThis.Date = class extends Real {
  constructor(...args) {
    super(...(args.length === 0 ? [Real.now() + shift] : args));
  }
  static now() {
    return Real.now() + shift;
  }
};
