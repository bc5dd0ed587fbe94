import { expect, test } from "vitest";
import type { Tx } from "../../infra/db/database.ts";
import { Account } from "../../subgraphs/compute/account/account.entity.ts";
import { Workload } from "../../subgraphs/compute/workload/workload.entity.ts";
import { LockOrder } from "./lock-order.ts";

const nobody = { sql: async () => [], rows: async () => [], row: async () => null } as unknown as Tx;

async function faultsOf(...steps: ((tx: Tx) => Promise<unknown>)[]): Promise<string[]> {
  const order = new LockOrder();
  const tx = order.watched(nobody);
  for (const step of steps) await step(tx);
  return [...order.faults].map((fault) => fault.split(":")[0]!);
}

const account = (tx: Tx) => tx.sql("update compute.account set held_micros = 0 where id = $1");
const capacity = (tx: Tx) => tx.sql("update compute.capacity set gpus_used = 0 where id = $1");
const workload = (tx: Tx) => tx.row(Workload, "where t.id = $1 for update");
const placement = (tx: Tx) => tx.sql("update compute.placement set want = 'run' where id = $1");

test("the account comes after the workload and the capacity", async () => {
  expect(await faultsOf(workload, placement, capacity, account)).toEqual([]);
  expect(await faultsOf(account, workload)).toEqual(["compute.workload after compute.account"]);
  expect(await faultsOf(account, capacity)).toEqual(["compute.capacity after compute.account"]);
  expect(await faultsOf(capacity, placement)).toEqual(["compute.placement after compute.capacity"]);
});

test("what is locked already may be written at any time, and so may what is the workload's", async () => {
  expect(await faultsOf(workload, account, placement, workload)).toEqual([]);
});

test("looking waits for nobody, nor does taking what is free", async () => {
  const looks = (tx: Tx) => tx.row(Workload, "where t.id = $1");
  const takesFree = (tx: Tx) => tx.sql("select 1 from compute.workload where id = $1 for update skip locked");
  expect(await faultsOf((tx) => tx.row(Account, "where t.id = $1 for share"), looks, takesFree)).toEqual([]);
});

test("one statement that writes both is seen in the order that it names", async () => {
  const both = (tx: Tx) =>
    tx.sql("with own as (update compute.account set a = 1 returning id) update compute.workload set b = 1");
  expect(await faultsOf(both)).toEqual(["compute.workload after compute.account"]);
});
