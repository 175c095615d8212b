// Chance that can be had again: the seed of a run of the fault suite is printed, and FAULT_SEED sets it.
const seed = Number(process.env.FAULT_SEED ?? Math.floor(Math.random() * 2 ** 31));
console.log(`fault timing: FAULT_SEED=${seed}`);

/** mulberry32 */
let state = seed;
export function random(): number {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}
