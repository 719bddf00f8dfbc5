import type { Place, RecordKind } from "../damage.ts";

/** Rows of a table that one or more columns name; where it is several, a slash stands between their values. */
export function tablePlace(
  kind: RecordKind,
  {
    table,
    ns,
    key,
    of,
  }: { table: string; ns: string; key: readonly string[]; of?: readonly [string, string] },
): Place {
  const fixed = of === undefined ? [["ns", ns]] : [["ns", ns], of];
  return {
    kind,
    ...(of === undefined ? {} : { of: of[1] }),
    where(name) {
      // The last column's value has no slash in it.
      const values = key.length === 1 ? [name] : [name.replace(/\/[^/]*$/, ""), name.replace(/^.*\//s, "")];
      const columns = [...fixed, ...key.map((column, at) => [column, values[at] ?? ""])];
      const condition = columns.map(([column, value]) => `${column} = '${value?.replaceAll("'", "''")}'`);
      return {
        where: `table ${table}${key.length === 0 ? "" : `, ${key.join("/")} ${name}`}`,
        remove: `DELETE FROM ${table} WHERE ${condition.join(" AND ")}`,
      };
    },
  };
}
