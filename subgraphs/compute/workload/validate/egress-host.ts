import { isIP } from "node:net";
import { domainToASCII } from "node:url";

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const MAX_HOST_LENGTH = 253;

/**
 * A host name as it is compared: lower case, international names in their ASCII form. Null for anything but an exact
 * name of two labels or more: URLs, ports, addresses in any notation and wildcards.
 */
export function egressHost(text: string): string | null {
  if (!/^[^\s:/?#@[\]*\\%]+$/u.test(text)) return null;
  const host = domainToASCII(text); // maps 0x7f.1 and its like to the address that they mean
  if (host === "" || host.length > MAX_HOST_LENGTH || isIP(host) !== 0) return null;
  const labels = host.split(".");
  return labels.length >= 2 && labels.every((label) => LABEL.test(label)) ? host : null;
}
