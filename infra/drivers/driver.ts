/**
 * The driver contract: how the platform gets capacity from a supplier. One conformance suite runs over every driver.
 *
 * - Every call is idempotent by *our* order id. A driver keeps no state of its own that a restart would lose.
 * - Outcomes are values. A call that times out or whose answer is lost is `unknown`, never an exception and never a
 *   guess; the platform then observes, and does not launch a second time.
 * - `gone` means proven absent: nothing runs, nothing is charged by the supplier. "Not found" right after a launch is
 *   `unknown` or, from a supplier that forgets nothing it has taken, `never_seen`; not `gone`.
 * - No supplier name, account or instance id reaches a tenant: offers are known by their catalogue sku.
 */
export interface Driver {
  /** Stable name of the supplier within the deployment, such as `local`. Never shown to tenants. */
  readonly supplier: string;
  /** What could be had now. Called every few seconds; must answer within `signal`. */
  offers(signal: AbortSignal): Promise<OfferFact[]>;
  launch(order: LaunchOrder, signal: AbortSignal): Promise<LaunchOutcome>;
  observe(orderId: string, signal: AbortSignal): Promise<Observation>;
  /** Asks for the end. Repeat until `observe` or this says `gone`. */
  terminate(orderId: string, signal: AbortSignal): Promise<"terminating" | "gone" | "unknown">;
  /** Every order id that the supplier holds, for the reconciler that ends what we do not know. Null: cannot tell now. */
  list(signal: AbortSignal): Promise<string[] | null>;
  close(): Promise<void>;
}

/** Capacity that several offers may share, such as one machine. Reservations are counted against it. */
export interface CapacityFact {
  /** Stable within the supplier, such as the machine's id. */
  key: string;
  cpuMillis: number;
  memoryMb: number;
  gpus: number;
  /** How many orders it takes at all. */
  slots: number;
}

/** One configuration that a supplier offers. Prices are per configuration (all devices together) and hour. */
export interface OfferFact {
  /** Catalogue id shown to tenants, such as `local-cpu` or `sim-h100-2x`; unique within the supplier and region. */
  sku: string;
  region: string;
  capacity: CapacityFact;
  computeClass: "vm" | "accelerator";
  /** Cores that the offer can give to one order. */
  vcpus: number;
  hostMemoryGb: number;
  diskGb: number;
  networkGbps: number | null;
  /** Canonical GPU family such as `H100`; null for a CPU offer. */
  accelerator: string | null;
  gpuCount: number;
  deviceMemoryGb: number;
  rateMicrosPerHour: bigint;
  interruptible: boolean;
  /** Accelerators that do not exist, declared for development. */
  simulated: boolean;
  /** Guests are isolated, so secrets and egress rules hold. */
  isolated: boolean;
  /** Said in events and placements, such as `image not pulled: host userland`; null for nothing to say. */
  note: string | null;
  expectedBootSeconds: number;
  /** Pool that the capacity belongs to; null for market capacity. */
  poolId: string | null;
  /** Tenant that alone may use it; null for everybody. */
  tenantId: string | null;
}

export interface LaunchOrder {
  orderId: string;
  sku: string;
  region: string;
  /** One-time token for the runner protocol's `open`. */
  token: string;
  /** Base URL of intake, such as `http://127.0.0.1:4000/runner/v1`. */
  intakeUrl: string;
  cpuMillis: number;
  memoryMb: number;
  gpuCount: number;
}

export type LaunchOutcome =
  | { outcome: "accepted" }
  /** Taken, not yet sure: observe. */
  | { outcome: "pending" }
  | {
      outcome: "refused";
      reason: "no_capacity" | "bad_order" | "isolation_unavailable" | "supplier_error";
      message: string;
    }
  | { outcome: "unknown"; message: string };

export type Observation =
  | { state: "starting" | "running" | "ending" }
  | { state: "gone" }
  /**
   * Nothing of it is there and no end of it is remembered: its launch did not arrive, or what took it died before that
   * was written down. Launching it again cannot run it twice.
   */
  | { state: "never_seen" }
  /** Capacity will be taken back at `noticeAt`. */
  | { state: "reclaiming"; noticeAt: Date }
  | { state: "unknown"; message: string };

/** Whether the supplier shows something of the order: what it cannot tell, never saw or has ended is nothing. */
export function isHeld({ state }: Observation): boolean {
  return state !== "gone" && state !== "unknown" && state !== "never_seen";
}
