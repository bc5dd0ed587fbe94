import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HostFixture, orderSpec, processesWith, until } from "../testing/host-fixture.ts";

describe("a host agent", () => {
  let host: HostFixture;
  beforeAll(async () => {
    host = await HostFixture.start();
  });
  afterAll(() => host?.stop());

  it("runs a command and tells its phases, its log, its exit and its end in that order", async () => {
    const order = await host.run(["sh", "-c", "echo out; exit 3"]);
    expect(order.records.map((record) => record.type)).toEqual(["phase", "phase", "log", "exit", "end"]);
    expect(order.log.toString()).toBe("out\n");
    expect(order.exit).toMatchObject({ code: 3, signal: null, oom: false, killedBy: null, startFailure: null });
    expect(order.of("end")[0]).toMatchObject({
      logBytes: 4,
      logSha256: createHash("sha256").update("out\n").digest("hex"),
    });
  });

  it("keeps stdout and stderr in the order in which they were written", async () => {
    const order = await host.run([
      "sh",
      "-c",
      "for i in 1 2 3; do echo o$i; sleep 0.02; echo e$i >&2; sleep 0.02; done",
    ]);
    expect(order.log.toString()).toBe("o1\ne1\no2\ne2\no3\ne3\n");
  });

  it("gives the command real pipes, which it can open again by name", async () => {
    const order = await host.run(["sh", "-c", "echo a > /dev/stdout; echo b > /dev/stderr; cat /dev/stdin"]);
    expect(order.log.toString()).toBe("a\nb\n");
    expect(order.exit?.code).toBe(0);
  });

  it("leaves no descriptor of its own open in the command", async () => {
    const order = await host.run(["sh", "-c", "ls /proc/self/fd | tr '\\n' ' '"]);
    expect(order.log.toString()).toBe("0 1 2 3 ");
  });

  it("tells a command that ended at once from one that was never there and one that may not run", async () => {
    const [quick, missing, closed, interpreter] = await Promise.all([
      host.run(["true"]),
      host.run(["no-such-program", "x"]),
      host.run(["/etc/passwd"]),
      host.run(["sh", "-c", "printf '#!/no/such/thing\\n' > s; chmod +x s; exec ./s"]),
    ]);
    expect(quick.exit).toMatchObject({ code: 0, startFailure: null });
    expect(missing.exit).toMatchObject({ code: null, signal: null, ranMs: 0, startFailure: { kind: "not_found" } });
    const none = await host.run([]);
    expect(none.exit?.startFailure).toMatchObject({
      kind: "not_found",
      message: expect.stringContaining("no command"),
    });
    const shellLine = await host.run(["echo hi"]);
    expect(shellLine.exit?.startFailure?.message).toContain("a command is a list");
    expect(missing.exit?.startFailure?.message).toContain("no-such-program");
    expect(closed.exit).toMatchObject({ code: null, startFailure: { kind: "not_executable" } });
    expect(interpreter.exit).toMatchObject({ code: 127, startFailure: null });
    expect(missing.of("phase").map((record) => record.phase)).toEqual(["staging"]);
  });

  it("tells the signal that ended a command", async () => {
    const order = await host.run(["sh", "-c", "kill -SEGV $$"]);
    expect(order.exit).toMatchObject({ code: null, signal: "SIGSEGV", oom: false, killedBy: null });
  });

  it("takes a command that kills its init at once for one that ran", async () => {
    const orders = await Promise.all(
      Array.from({ length: 12 }, () => host.run(["sh", "-c", "kill -9 2; kill -9 $PPID; sleep 5"])),
    );
    for (const order of orders)
      expect(order.exit).toMatchObject({ code: null, signal: "SIGKILL", killedBy: null, startFailure: null });
  });

  it("gives the command the environment of a stage", async () => {
    const script =
      'echo "$NODUS_STAGE_ID $NODUS_CHECKPOINT_DIR $NODUS_SECRET_TOKEN_LENGTH $TMPDIR $HOME $PYTHONUNBUFFERED $EXTRA $(pwd) $https_proxy"; test -d "$NODUS_CHECKPOINT_DIR" && touch "$TMPDIR/x" "$HOME/x"';
    const order = await host.run(["sh", "-c", script], {
      stageId: "train",
      env: { EXTRA: "1", NODUS_STAGE_ID: "forged" },
    });
    expect(order.log.toString()).toBe(
      "train /workspace/code/state  /workspace/tmp /workspace/home 1 1 /workspace/code http://127.0.0.1:3128\n",
    );
    expect(order.exit?.code).toBe(0);
  });

  it("delivers secrets in the environment alone and masks them in every stream", async () => {
    const secret = "s3cr3t-value-of-the-team";
    const script = [
      'printf "%s" "$NODUS_SECRET_TOKEN" | head -c 7; sleep 0.3; printf "%s\\n" "$NODUS_SECRET_TOKEN" | tail -c +8',
      'sleep 0.1; echo "$NODUS_SECRET_TOKEN" >&2; sleep 0.1',
      `echo "nodus.rl_event {\\"message\\":\\"$NODUS_SECRET_TOKEN\\"}"`,
      "tr '\\0' ' ' < /proc/1/cmdline | grep -c s3cr3t; cat /proc/2/environ | grep -c s3cr3t",
      "true",
    ].join("; ");
    const order = await host.run(
      ["sh", "-c", script],
      { secretEnv: ["NODUS_SECRET_TOKEN"] },
      { NODUS_SECRET_TOKEN: secret },
    );
    expect(order.log.toString()).toBe('[redacted]\n[redacted]\nnodus.rl_event {"message":"[redacted]"}\n0\n0\n');
    expect(JSON.stringify(order.records)).not.toContain("s3cr3t");
    expect(order.of("rl_event")[0]?.event).toEqual({ message: "[redacted]" });
  });

  it("keeps bytes that are no text, progress bars and a very long line as they are", async () => {
    const python = [
      "import sys,os",
      "w=sys.stdout.buffer.write",
      "w(bytes(range(256))*40)",
      "[w(b'\\r%d%%' % i) for i in range(100)]",
      "w(b'x'*3_000_000+b'\\n')",
      "w('\\u00e9'.encode()[:1]); sys.stdout.flush(); w('\\u00e9'.encode()[1:])",
      "sys.exit(1)",
    ].join(";");
    const order = await host.run(["python3", "-c", python]);
    const bars = Array.from({ length: 100 }, (_, i) => `\r${i}%`).join("");
    const all = Array.from({ length: 40 }, () => Buffer.from(Array.from({ length: 256 }, (_, i) => i)));
    const expected = Buffer.concat([...all, Buffer.from(bars), Buffer.alloc(3_000_000, "x"), Buffer.from("\né")]);
    expect(order.log.equals(expected)).toBe(true);
    expect(order.exit?.code).toBe(1);
    let offset = 0;
    for (const record of order.of("log")) {
      expect(record.offset).toBe(offset);
      offset += Buffer.from(record.data, "base64").length;
      expect(Buffer.from(record.data, "base64").length).toBeLessThanOrEqual(64 * 1024);
    }
    expect(order.of("end")[0]).toMatchObject({
      logBytes: expected.length,
      logSha256: createHash("sha256").update(expected).digest("hex"),
    });
  });

  it("cuts the log at its limit, says so once, and reports the exit all the same", async () => {
    const order = await host.run(["sh", "-c", "head -c 300000 /dev/zero; exit 4"], {
      limits: { logCommittedBytes: 100_000 },
    });
    expect(order.log.length).toBe(100_000);
    expect(order.of("log_truncated")).toMatchObject([{ offset: 100_000 }]);
    expect(order.exit?.code).toBe(4);
    expect(order.of("end")[0]?.logBytes).toBe(100_000);
  });

  it("finds units and RL events on stdout only, and leaves the lines in the log", async () => {
    const line = 'nodus.unit_done {"id":"u1","ms":5}';
    const order = await host.run([
      "sh",
      "-c",
      `echo '${line}'; echo '${line}' >&2; echo 'nodus.rl_event {"event_id":"nre_1"}'`,
    ]);
    expect(order.of("unit")).toMatchObject([{ id: "u1", ms: 5 }]);
    expect(order.of("rl_event")).toMatchObject([{ event: { event_id: "nre_1" } }]);
    expect(
      order.log
        .toString()
        .split("\n")
        .filter((text) => text === line),
    ).toHaveLength(2);
  });

  it("ends what a command leaves behind, before it says that the order ended", async () => {
    const marker = `left-behind-${process.pid}`;
    const stubborn = `trap '' TERM HUP; while :; do sleep 0.1; done # ${marker}`;
    const order = await host.run([
      "sh",
      "-c",
      `setsid sh -c "${stubborn}" >/dev/null 2>&1 & (setsid sh -c "${stubborn}" &) ; sleep 0.2; exit 0`,
    ]);
    expect(order.exit).toMatchObject({ code: 0, killedBy: null });
    expect(processesWith(marker)).toEqual([]);
  });

  it("lets a cancelled command save its work, then ends a tree that does not listen", async () => {
    const marker = `stubborn-${process.pid}`;
    const polite = await host.launch(
      orderSpec(["sh", "-c", "trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.05; done"]),
    );
    const stubborn = await host.launch(
      orderSpec([
        "sh",
        "-c",
        `trap '' TERM; setsid sh -c 'trap "" TERM; sleep 100 # ${marker}' & echo ready; while :; do sleep 0.05; done`,
      ]),
    );
    const neighbour = await host.launch(orderSpec(["sh", "-c", "echo ready; sleep 3; echo alive"]));
    await until(() => [polite, stubborn, neighbour].every((order) => order.log.includes("ready")), "all run");
    host.intake.want(polite, { want: "cancel" });
    host.intake.want(stubborn, { want: "cancel" });
    await until(() => polite.ended && stubborn.ended, "both end");
    expect(polite.exit).toMatchObject({ code: 7, killedBy: "cancel" });
    expect(polite.log.toString()).toMatch(/^ready\n(Terminated\n)?saved\n$/);
    expect(stubborn.exit).toMatchObject({ code: null, signal: "SIGKILL", killedBy: "cancel" });
    expect(stubborn.exit?.ranMs).toBeGreaterThanOrEqual(1_000);
    expect(processesWith(marker)).toEqual([]);
    await until(() => neighbour.ended, "the neighbour ends by itself");
    expect(neighbour.log.toString()).toBe("ready\nalive\n");
  });

  it("refuses a launch that comes after its order was terminated", async () => {
    const spec = orderSpec(["sleep", "100"]);
    const order = await host.launch(spec);
    await until(() => order.of("phase").length === 2, "it runs");
    expect((await host.client.ask({ op: "terminate", orderId: spec.orderId })).state).toBe("terminating");
    await until(
      async () => (await host.client.ask({ op: "terminate", orderId: spec.orderId })).state === "gone",
      "it is gone",
    );
    expect((await host.client.ask({ op: "observe", orderId: spec.orderId })).state).toBe("gone");
    const again = await host.client.ask({
      op: "launch",
      orderId: spec.orderId,
      token: order.token,
      intakeUrl: host.intake.url,
    });
    expect(again.state).toBe("terminated");
    await until(() => order.ended, "intake heard its end");
    expect((await host.client.ask({ op: "list" })).orders).not.toContain(spec.orderId);
  });

  it("takes the same launch twice as one", async () => {
    const spec = orderSpec(["sh", "-c", "echo once"]);
    const order = host.intake.order(spec);
    const launch = { op: "launch", orderId: spec.orderId, token: order.token, intakeUrl: host.intake.url } as const;
    const states = await Promise.all([host.client.ask(launch), host.client.ask(launch), host.client.ask(launch)]);
    expect(states.map((answer) => answer.state).sort()).toEqual(["accepted", "already", "already"]);
    await until(() => order.ended, "it ends");
    expect(order.log.toString()).toBe("once\n");
    await until(async () => (await host.client.ask(launch)).state === "already", "an ended order is not run again");
  });

  it("keeps its socket to itself", () => {
    expect(statSync(join(host.folder, "h", "host.sock")).mode & 0o777).toBe(0o600);
  });

  it("answers what is no command with a reason", async () => {
    await expect(host.client.ask({ op: "observe" } as never)).rejects.toThrow("not a command");
  });
});
