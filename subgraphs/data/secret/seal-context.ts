/** The place of a version, which its ciphertext is bound to. */
export function sealContext(tenantId: string, secretId: string, version: number): string {
  return `${tenantId}/${secretId}/${version}`;
}
