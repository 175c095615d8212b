/** Puts a text into the clipboard, and says that it did. */
import { useState } from 'react';

async function copy(text: string): Promise<void> {
  // Only pages of this machine and behind TLS have the clipboard.
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = document.createElement('textarea');
  box.value = text;
  document.body.append(box);
  box.select();
  document.execCommand('copy');
  box.remove();
}

export function CopyButton({ text, what }: { text: string; what: string }) {
  const [said, say] = useState('copy');
  return (
    <button
      type="button"
      className="copy noprint"
      aria-label={said === 'copy' ? `copy ${what}` : said}
      onClick={() => {
        copy(text).then(
          () => say('copied'),
          () => say('not allowed'),
        );
      }}
      onBlur={() => say('copy')}
    >
      {said}
    </button>
  );
}
