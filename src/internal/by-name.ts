/** Values by name, whatever the names are: none of them finds what every object has, as `constructor` would. */
export function byName<T>(entries: Iterable<readonly [string, T]> = []): Record<string, T> {
  const found = Object.create(null) as Record<string, T>;
  for (const [name, value] of entries) found[name] = value;
  return found;
}
