/**
 * The part of CPython's `random` that a shuffle needs: MT19937 seeded by init_by_array, `_randbelow` by rejection, Fisher-Yates from
 * the end. mini-swe-agent's `--shuffle` is `random.seed(42); random.shuffle(...)`, so the same ids must come out in the same order.
 */

const STATE_WORDS = 624;
const MIDDLE = 397;

/** `abs(seed)` in little-endian 32-bit words, as `random.seed(int)` hands it to the generator. */
function seedWords(seed: number): number[] {
  let rest = BigInt(Math.abs(Math.trunc(seed)));
  const words: number[] = [];
  while (rest > 0n) {
    words.push(Number(rest & 0xffff_ffffn));
    rest >>= 32n;
  }
  return words.length > 0 ? words : [0];
}

function initialState(seed: number): Uint32Array {
  const key = seedWords(seed);
  const state = new Uint32Array(STATE_WORDS);
  const mixed = (i: number) => state[i - 1]! ^ (state[i - 1]! >>> 30);
  state[0] = 19650218;
  for (let i = 1; i < STATE_WORDS; i++) state[i] = Math.imul(1812433253, mixed(i)) + i;

  let i = 1;
  let j = 0;
  const wrap = () => {
    i++;
    if (i < STATE_WORDS) return;
    state[0] = state[STATE_WORDS - 1]!;
    i = 1;
  };
  for (let k = Math.max(STATE_WORDS, key.length); k > 0; k--) {
    state[i] = (state[i]! ^ Math.imul(mixed(i), 1664525)) + key[j]! + j;
    wrap();
    j = (j + 1) % key.length;
  }
  for (let k = STATE_WORDS - 1; k > 0; k--) {
    state[i] = (state[i]! ^ Math.imul(mixed(i), 1566083941)) - i;
    wrap();
  }
  state[0] = 0x8000_0000;
  return state;
}

function regenerate(state: Uint32Array): void {
  for (let k = 0; k < STATE_WORDS; k++) {
    const y = (state[k]! & 0x8000_0000) | (state[(k + 1) % STATE_WORDS]! & 0x7fff_ffff);
    state[k] = state[(k + MIDDLE) % STATE_WORDS]! ^ (y >>> 1) ^ (y & 1 ? 0x9908_b0df : 0);
  }
}

/** A stream of 32-bit words. */
function mersenneTwister(seed: number): () => number {
  const state = initialState(seed);
  let next = STATE_WORDS;
  return () => {
    if (next >= STATE_WORDS) {
      regenerate(state);
      next = 0;
    }
    let y = state[next++]!;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c_5680;
    y ^= (y << 15) & 0xefc6_0000;
    y ^= y >>> 18;
    return y >>> 0;
  };
}

/** The order after `random.seed(seed); random.shuffle(items)`, as a new array. */
export function pythonShuffle<T>(items: readonly T[], seed: number): T[] {
  const word = mersenneTwister(seed);
  const below = (n: number): number => {
    const shift = Math.clz32(n); // 32 minus the bit length of n
    let r = word() >>> shift;
    while (r >= n) r = word() >>> shift;
    return r;
  };
  const shuffled = [...items];
  for (let i = shuffled.length - 1; i > 0; i--) {
    const j = below(i + 1);
    [shuffled[i], shuffled[j]] = [shuffled[j]!, shuffled[i]!];
  }
  return shuffled;
}
