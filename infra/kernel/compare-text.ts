/**
 * Orders texts by their UTF-16 code units, as `Array.prototype.sort` does: the same in every process, whatever its
 * locale. Negative when `a` comes first.
 */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
