import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { driverConformance } from "../../../tests/conformance/driver.ts";
import { stopHostAgent } from "../../runner/testing/host-fixture.ts";
import { IntakeDouble } from "../../runner/testing/intake-double.ts";
import { parseAccelerators } from "./accelerators.ts";
import { LocalDriver } from "./local-driver.ts";

driverConformance("local", async () => {
  const folder = mkdtempSync("/var/tmp/nodus-conformance-");
  chmodSync(folder, 0o711);
  // Nobody answers for the orders of this suite: they stay where a platform that is away leaves them.
  const intake = new IntakeDouble();
  await intake.start();
  const intakeUrl = intake.url;
  await intake.stop();
  const make = () =>
    new LocalDriver({
      host: { folder: join(folder, "h"), allowUnisolated: false, version: "test", idleExitMs: 60_000 },
      ...{ intakeUrl, machineId: "m1", region: "local", rateMicrosPerHour: 100_000n },
      ...{ declaredAccelerators: parseAccelerators("H100:2"), useInstalledGpus: false },
    });
  const driver = make();
  return {
    driver,
    intakeUrl,
    another: async () => make(),
    tick: async () => {},
    close: async () => {
      await driver.close();
      await stopHostAgent(join(folder, "h"));
      rmSync(folder, { recursive: true, force: true });
    },
  };
});
