/** Dark and light: the system decides unless a person did. */
import { useEffect, useState } from 'react';
import { keep, kept } from './data/kept.ts';

const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

export const nextTheme = (theme: Theme): Theme => THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;

function stored(): Theme {
  const found = kept('theme');
  return THEMES.find((theme) => theme === found) ?? 'auto';
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(stored);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    keep('theme', theme);
  }, [theme]);
  return [theme, setTheme];
}
