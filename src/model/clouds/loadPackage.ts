/** Loads the packages of a cloud, which only those install who ask it. */
import { ModelConfigError } from '../failure.ts';

const isMissing = (error: unknown): boolean =>
  (error as { code?: string }).code === 'ERR_MODULE_NOT_FOUND' ||
  // Vite's own words for it.
  /^(Cannot find|Failed to (load|resolve)) (package|module|import|url)/i.test((error as Error).message);

export const missingText = (cloud: string, packages: readonly string[]) => ({
  message: `${cloud}/ needs ${packages.length > 1 ? 'packages that are' : 'a package that is'} not installed: ${packages.join(', ')}`,
  fix: `npm install ${packages.join(' ')}`,
});

/** Rejects with ModelConfigError when one of `packages` is not there. `load` imports by the literal name, so that checkers see it. */
export async function loadPackages<T>(
  cloud: string,
  packages: readonly string[],
  load: () => Promise<T>,
): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(error)) throw error;
    const { message, fix } = missingText(cloud, packages);
    throw new ModelConfigError('PROVIDER_NOT_CONFIGURED', `${message}; ${fix}`);
  }
}
