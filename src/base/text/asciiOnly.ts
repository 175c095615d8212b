/** What is not printable ASCII as JSON escapes it, each UTF-16 unit by itself: `json.dumps` of Python does so by default. */
export const asciiOnly = (text: string): string =>
  text.replace(/[\x7f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
