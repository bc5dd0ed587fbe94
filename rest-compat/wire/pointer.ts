/** Where a value stands in a request, kept as links so that nothing is built while all is well. */
export type Place = { readonly within: Place; readonly step: string | number } | null;

/** The RFC 6901 pointer of a place. */
export function pointer(place: Place): string {
  if (!place) return "";
  return `${pointer(place.within)}/${String(place.step).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
