import { BlockList, isIP } from "node:net";

/** Ranges that nothing may reach on behalf of a tenant: not global, or answered by the machine, its cloud or its neighbours. */
const CLOSED_V4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
  // A cloud's host service that lies in a public range.
  ["168.63.129.16", 32],
] as const;

/** Only 2000::/3 is handed out at all; parts of it carry other addresses inside or are reserved. */
const OPEN_V6 = ["2000::", 3] as const;
const CLOSED_V6 = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const;

const closedV4 = blockList(CLOSED_V4, "ipv4");
const closedV6 = blockList(CLOSED_V6, "ipv6");
const openV6 = blockList([OPEN_V6], "ipv6");

function blockList(ranges: readonly (readonly [string, number])[], family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of ranges) list.addSubnet(network, prefix, family);
  return list;
}

/** Whether an address is one of the public internet. Anything that is no IP address is not. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !closedV4.check(address, "ipv4");
  // Mapped and translated addresses are outside 2000::/3, so they are closed without being taken apart.
  return family === 6 && !address.includes("%") && openV6.check(address, "ipv6") && !closedV6.check(address, "ipv6");
}

/** Private hosts and ranges that an operator opens to guests, imports, connections and webhooks. */
export class PrivateExceptions {
  readonly #hosts = new Set<string>();
  readonly #ranges = new BlockList();

  /** @param entries host names, addresses or CIDRs; throws on one that is none of these */
  constructor(entries: readonly string[]) {
    for (const entry of entries) this.#add(entry.trim().toLowerCase());
  }

  allows(hostname: string, address: string): boolean {
    if (this.#hosts.has(hostname.toLowerCase())) return true;
    const family = isIP(address);
    return family !== 0 && this.#ranges.check(address, family === 4 ? "ipv4" : "ipv6");
  }

  #add(entry: string): void {
    const [network = "", prefix] = entry.split("/");
    const family = isIP(network);
    if (family !== 0 && prefix !== undefined)
      this.#ranges.addSubnet(network, Number(prefix), family === 4 ? "ipv4" : "ipv6");
    else if (family !== 0) this.#ranges.addAddress(network, family === 4 ? "ipv4" : "ipv6");
    else if (/^[a-z0-9._-]+$/.test(entry)) this.#hosts.add(entry);
    else throw new Error(`${entry} is neither a host name nor an address nor a CIDR`);
  }
}
