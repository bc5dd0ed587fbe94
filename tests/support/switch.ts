import net from "node:net";

/** A fixed address in front of servers that come and go, such as a cloud's name for whichever server leads. */
export interface Switch {
  readonly port: number;
  /** Cuts every connection; new ones lead to another port of this machine, or nowhere. */
  leadTo(port: number | null): void;
  close(): Promise<void>;
}

export async function startSwitch(target: number): Promise<Switch> {
  let current: number | null = target;
  const open = new Set<net.Socket>();
  const server = net.createServer((near) => {
    if (current === null) return void near.destroy();
    const far = net.connect(current, "127.0.0.1");
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one.pipe(other);
      one.on("error", () => {}); // `close` follows
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    port: (server.address() as net.AddressInfo).port,
    leadTo(port) {
      current = port;
      cut();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cut();
      }),
  };
}
