// For maintainers: adds to package-lock.json the optional packages of other platforms that npm left out.
//   node scripts/completeLock.mjs
// npm drops an optional package from the lock when the registry it asks does not have it (mirrors often carry only some
// platforms), and then `npm ci` refuses the lock as out of sync. The entries lack only the checksum, which npm takes from the registry.
import { readFileSync, writeFileSync } from 'node:fs';
import { platformOf, unlockedPackages } from './setup/lock.mjs';

const FILE = new URL('../package-lock.json', import.meta.url);
const lock = JSON.parse(readFileSync(FILE, 'utf8'));
const missing = unlockedPackages(lock);
const required = missing.filter((entry) => !entry.optional);

if (required.length > 0) {
  const names = required.map((entry) => entry.name).join(', ');
  process.stderr.write(
    `package-lock.json lacks packages that are not optional: ${names}. Run npm install.\n`,
  );
  process.exitCode = 1;
} else {
  for (const { name, range, dev } of missing)
    lock.packages[`node_modules/${name}`] = {
      version: range,
      ...platformOf(name),
      ...(dev ? { dev: true } : {}),
      optional: true,
    };
  const root = lock.packages[''];
  const rest = Object.entries(lock.packages).filter(([path]) => path !== '');
  rest.sort(([a], [b]) => a.localeCompare(b, 'en'));
  lock.packages = Object.fromEntries([['', root], ...rest]);
  writeFileSync(FILE, `${JSON.stringify(lock, null, 2)}\n`);
  process.stderr.write(`${missing.length} optional packages added to package-lock.json\n`);
}
