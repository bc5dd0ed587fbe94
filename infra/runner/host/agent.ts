import { chmodSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { LIMITS } from "../../kernel/limits.ts";
import { hostAgentName } from "../isolation/abandoned-groups.ts";
import type { HostAnswer, HostCommand } from "../protocol.ts";
import type { GuestHost } from "./execution.ts";
import { createGuestHost } from "./guest-host.ts";
import { IntakeLink } from "./link.ts";
import { Order, type OrderHost } from "./order.ts";
import { OrderFolder } from "./order-folder.ts";
import { PastOrders } from "./past-orders.ts";

export interface AgentSettings {
  /** Absolute; must be reachable by guests' users when the agent runs as root. */
  folder: string;
  allowUnisolated: boolean;
  /** Program name or path of bubblewrap. */
  bubblewrap: string;
  version: string;
  /** Exits after this long without an order and without a platform; null for never. */
  idleExitMs: number | null;
  report: (message: string) => void;
}

/** Everything that runs on one machine for one platform. */
export class HostAgent {
  readonly #settings: AgentSettings;
  readonly #guests: GuestHost;
  readonly #link: IntakeLink;
  readonly #orders = new Map<string, Order>();
  readonly #past: PastOrders;
  readonly #beat: NodeJS.Timeout;
  #intakeUrl = "";
  #idleSinceMs = performance.now();

  private constructor(settings: AgentSettings, guests: GuestHost) {
    this.#settings = settings;
    this.#guests = guests;
    this.#past = new PastOrders(join(settings.folder, "past-orders"));
    this.#link = new IntakeLink(
      {
        connected: () => this.#each((order) => order.connected()),
        disconnected: () => this.#each((order) => order.disconnected()),
        frame: (frame) => {
          const order = this.#orders.get(frame.orderId);
          order?.frame(frame).catch((error: Error) => settings.report(`${frame.orderId}: ${error.stack}`));
        },
      },
      settings.report,
    );
    this.#beat = setInterval(() => this.#each((order) => order.beat()), LIMITS.heartbeatIntervalMs);
  }

  /** Takes up what an earlier life left and is ready for commands. */
  static async start(settings: AgentSettings): Promise<HostAgent> {
    const orders = join(settings.folder, "orders");
    mkdirSync(orders, { recursive: true });
    for (const path of [settings.folder, orders]) chmodSync(path, 0o711);
    const guests = await createGuestHost({ ...settings, name: hostAgentName(settings.folder) });
    const agent = new HostAgent(settings, guests);
    await agent.#recover(orders);
    return agent;
  }

  get isolation() {
    return this.#guests.isolation;
  }

  /** How long there has been nothing to do and nobody to do it for. */
  idleMs(): number {
    // An order whose end intake has yet to hear is on disk: the next life tells it.
    const busy = [...this.#orders.values()].some((order) => order.state !== "gone");
    if (busy || this.#link.connected) this.#idleSinceMs = performance.now();
    return performance.now() - this.#idleSinceMs;
  }

  obey(command: HostCommand): HostAnswer {
    this.#idleSinceMs = performance.now();
    switch (command.op) {
      case "hello":
        this.#aim(command.intakeUrl);
        return {
          ok: true,
          op: "hello",
          pid: process.pid,
          version: this.#settings.version,
          isolation: this.#guests.isolation,
          orders: [...this.#orders.keys()],
        };
      case "launch":
        return { ok: true, op: "launch", state: this.#launch(command.orderId, command.token, command.intakeUrl) };
      case "observe":
        return {
          ok: true,
          op: "observe",
          state: this.#orders.get(command.orderId)?.state ?? (this.#past.get(command.orderId) ? "gone" : "never_seen"),
        };
      case "terminate":
        return { ok: true, op: "terminate", state: this.#terminate(command.orderId) };
      case "list":
        return {
          ok: true,
          op: "list",
          orders: [...this.#orders].filter(([, order]) => order.state !== "gone").map(([id]) => id),
        };
    }
  }

  /** Ends every guest; their orders are told about by the next life. */
  async close(): Promise<void> {
    clearInterval(this.#beat);
    await Promise.all([...this.#orders.values()].map((order) => order.shutDown()));
    this.#link.close();
    await this.#guests.close();
  }

  #aim(intakeUrl: string): void {
    if (intakeUrl === "") return;
    this.#intakeUrl = intakeUrl;
    this.#link.target(intakeUrl);
  }

  #launch(orderId: string, token: string, intakeUrl: string): "accepted" | "already" | "terminated" {
    const past = this.#past.get(orderId);
    if (past) return past === "terminated" ? "terminated" : "already";
    if (this.#orders.has(orderId)) return "already";
    this.#aim(intakeUrl);
    const order = new Order(this.#orderHost(), orderId, token);
    this.#orders.set(orderId, order);
    if (this.#link.connected) order.connected();
    return "accepted";
  }

  #terminate(orderId: string): "terminating" | "gone" {
    const order = this.#orders.get(orderId);
    this.#past.remember(orderId, "terminated");
    order?.terminate();
    return order && order.state !== "gone" ? "terminating" : "gone";
  }

  #orderHost(): OrderHost {
    return {
      guests: this.#guests,
      link: this.#link,
      intakeUrl: () => this.#intakeUrl,
      ordersFolder: join(this.#settings.folder, "orders"),
      report: this.#settings.report,
      onGone: (orderId) => this.#past.remember(orderId, "ended"),
      onClosed: (orderId) => this.#orders.delete(orderId),
    };
  }

  async #recover(orders: string): Promise<void> {
    for (const name of readdirSync(orders)) {
      const folder = new OrderFolder(orders, name);
      const stored = folder.load();
      if (!stored) {
        await folder.remove();
        continue;
      }
      const order = new Order(this.#orderHost(), stored.orderId, null);
      this.#orders.set(stored.orderId, order);
      order.recover(stored).catch((error: Error) => this.#settings.report(`${stored.orderId}: ${error.stack}`));
    }
  }

  #each(act: (order: Order) => void): void {
    for (const order of this.#orders.values()) act(order);
  }
}
