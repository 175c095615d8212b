/** What a person set stays for the next visit. Files opened from a mail refuse storage: there it lasts as long as the page. */

const inMemory = new Map<string, string>();

export function keep(name: string, value: string): void {
  inMemory.set(name, value);
  try {
    localStorage.setItem(`swebatch-${name}`, value);
  } catch {
    // The map has it.
  }
}

export function kept(name: string): string | null {
  try {
    return localStorage.getItem(`swebatch-${name}`) ?? inMemory.get(name) ?? null;
  } catch {
    return inMemory.get(name) ?? null;
  }
}
