/** Whether an import failed because nobody has installed the package. */
export const isMissingPackage = (error: unknown): boolean =>
  (error as { code?: string }).code === 'ERR_MODULE_NOT_FOUND' ||
  // Vite's own words for it.
  /^(Cannot find|Failed to (load|resolve)) (package|module|import|url)/i.test((error as Error).message);
