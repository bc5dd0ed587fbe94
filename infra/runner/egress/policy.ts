import { isIP } from "node:net";
import { isPublicAddress, PrivateExceptions } from "../../net/public-address.ts";
import type { NetworkPolicy } from "../protocol.ts";

/** Ports that an allowlisted host may be reached on. */
const ALLOWLIST_PORTS = new Set([80, 443]);
const HTTPS_PORTS = new Set([443]);

/** Answers with every address of a name; rejects when there is none. */
export type Resolve = (hostname: string) => Promise<string[]>;

export type Verdict =
  | { allowed: true; addresses: string[] }
  | { allowed: false; reason: "policy" | "private" | "unresolved" };

/** Decides what one guest may reach. The caller connects to the very addresses that were judged, not to the name. */
export class EgressPolicy {
  readonly #policy: NetworkPolicy;
  readonly #hosts: Set<string>;
  readonly #exceptions: PrivateExceptions;
  readonly #resolve: Resolve;
  readonly #ownAddresses: ReadonlySet<string>;

  /** @param ownAddresses of this machine: services that listen on all interfaces must not be reached through them */
  constructor(policy: NetworkPolicy, resolve: Resolve, ownAddresses: ReadonlySet<string>) {
    this.#policy = policy;
    this.#hosts = new Set(policy.hosts.map(normalHost));
    this.#exceptions = new PrivateExceptions(policy.allowPrivate);
    this.#resolve = resolve;
    this.#ownAddresses = ownAddresses;
  }

  async judge(hostname: string, port: number): Promise<Verdict> {
    const host = normalHost(hostname);
    if (!this.#nameAllowed(host, port)) return { allowed: false, reason: "policy" };
    let addresses: string[];
    try {
      addresses = isIP(host) === 0 ? await this.#resolve(host) : [host];
    } catch {
      return { allowed: false, reason: "unresolved" };
    }
    const reachable = addresses.filter((address) => this.#addressAllowed(host, address));
    if (reachable.length > 0) return { allowed: true, addresses: reachable };
    return { allowed: false, reason: addresses.length === 0 ? "unresolved" : "private" };
  }

  #nameAllowed(host: string, port: number): boolean {
    if (host === "" || !Number.isInteger(port) || port < 1 || port > 65_535) return false;
    if (this.#policy.mode === "open") return true;
    const ports = this.#policy.httpsOnly ? HTTPS_PORTS : ALLOWLIST_PORTS;
    return this.#policy.mode === "allowlist" && ports.has(port) && this.#hosts.has(host);
  }

  #addressAllowed(host: string, address: string): boolean {
    if (this.#exceptions.allows(host, address)) return true;
    return isPublicAddress(address) && !this.#ownAddresses.has(address);
  }
}

/** Lower case, without the root's dot and an IPv6 address's brackets. */
export function normalHost(hostname: string): string {
  return hostname
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
}
