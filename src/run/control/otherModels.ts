/** Notes once when a model answers that was not asked for, or that differs from the one before. Every call records its model. */
export function tellOtherModels(note: (text: string) => void): (asked: string, answered: string) => void {
  const seen = new Map<string, Set<string>>();
  return (asked, answered) => {
    const before = seen.get(asked) ?? new Set<string>();
    if (before.has(answered)) return;
    const earlier = before.size > 0 ? `; before, ${[...before].join(' and ')} did` : '';
    if (answered !== asked || earlier)
      note(`warning: ${asked} was asked for and ${answered} answered${earlier}`);
    seen.set(asked, before.add(answered));
  };
}
