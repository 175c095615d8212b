/** Names of steps are names of folders, also on file systems that know no case: the rules are Harbor's. */

const INVALID = /[<>:"/\\|?*\u0000-\u001f\u007f]/;
const DEVICE = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[1-9¹²³])$/i;
const MOST_BYTES = 255;

export const isStepName = (name: string): boolean =>
  name.trim() !== '' &&
  !/[. ]$/.test(name) &&
  !INVALID.test(name) &&
  !DEVICE.test(name.split('.')[0]!.trimEnd()) &&
  Buffer.byteLength(name) <= MOST_BYTES;

/** Two names with one key are one folder somewhere. */
export const stepKey = (name: string): string => name.normalize('NFC').toLowerCase();
