/**
 * A Content-Disposition that saves a download under a name, whatever the name holds: what is not plain ASCII goes into
 * the RFC 5987 form, and the quoted form stands in with `_` for it. No name can break out of the header.
 */
export function attachment(fileName: string): string {
  const wellFormed = fileName.toWellFormed();
  const plain = wellFormed.replace(/[^\x20-\x7e]|["\\%/]/g, "_");
  const encoded = encodeURIComponent(wellFormed).replace(
    /['()*!]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return plain === wellFormed
    ? `attachment; filename="${plain}"`
    : `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
