import { type LookupAddress, lookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { isPublicAddress, type PrivateExceptions } from "./public-address.ts";

/** A tenant's address led to a machine that tenants must not reach. */
export class PrivateAddress extends Error {
  override readonly name = "PrivateAddress";
  readonly code = "PRIVATE_ADDRESS";
  readonly hostname: string;

  constructor(hostname: string) {
    super(`${hostname} is not a public address`);
    this.hostname = hostname;
  }
}

/** Whether a connection to `address`, found for `hostname`, may be made on behalf of a tenant. */
export function mayReach(hostname: string, address: string, exceptions: PrivateExceptions): boolean {
  return isPublicAddress(address) || exceptions.allows(hostname, address);
}

/** Throws `PrivateAddress` for a host that is written as an address which may not be reached; names are left to the lookup. */
export function requirePublicLiteral(host: string, exceptions: PrivateExceptions): void {
  const bare = host.replace(/^\[|\]$/g, "");
  if (isIP(bare) !== 0 && !mayReach(bare, bare, exceptions)) throw new PrivateAddress(bare);
}

/**
 * A `lookup` for `net.connect`, `tls.connect` and undici that answers only addresses which may be reached, so that the
 * address that was judged is the one connected to: a name cannot resolve to another one in between. Node does not look
 * up hosts that are written as addresses: give those to `requirePublicLiteral` first.
 */
export function guardedLookup(exceptions: PrivateExceptions): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found: LookupAddress[]) => {
      if (error) return callback(error, "", 0);
      const reachable = found.filter(({ address }) => mayReach(hostname, address, exceptions));
      if (reachable.length === 0) return callback(new PrivateAddress(hostname), "", 0);
      if (options.all) return callback(null, reachable);
      callback(null, reachable[0]!.address, reachable[0]!.family);
    });
  };
}
