import { type DocumentNode, type GraphQLSchema, getOperationAST, type OperationDefinitionNode } from "graphql";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import type { Contract, Operation } from "./contract.ts";
import type { Caller, RestPorts } from "./ports.ts";
import type { GraphRow, Reply, WireRequest } from "./row.ts";
import { type Conform, conformer } from "./wire/conform.ts";
import { GraphRefused } from "./wire/errors.ts";
import { type RecaseVariables, recaseVariables } from "./wire/recase.ts";

/** A REST answer, ready for the socket. */
export interface Answer {
  readonly status: number;
  /** Undefined for an answer without a body. */
  readonly body: unknown;
  readonly replayed: boolean;
}

/** Runs one operation's document with wire arguments. */
export type RunDocument = (
  variables: Readonly<Record<string, unknown>>,
  request: WireRequest,
  caller: Caller,
) => Promise<Answer>;

/** Compiles a document for an operation: recasing, execution, conforming and the status all know their types beforehand. */
export function compileDocument(
  contract: Contract,
  schema: GraphQLSchema,
  operation: Operation,
  document: DocumentNode,
  row: Pick<GraphRow, "give" | "status">,
  execute: RestPorts["execute"],
): RunDocument {
  const recase: RecaseVariables = recaseVariables(schema, operationOf(document, operation.id));
  const status = row.status ?? soleSuccess(operation);
  const wireSchema = contract.response(operation.id, status);
  const conform: Conform | null = wireSchema && conformer(contract.document, wireSchema);
  const give = row.give ?? same;
  return async (variables, request, caller) => {
    const result = await execute({ document, variables: recase(variables), ...caller });
    if (result.errors?.length) throw new GraphRefused(result.errors[0]!);
    const reply = result.data?.reply as Reply;
    if (reply === null || reply === undefined) throw new Refused(COMMON.not_found);
    const replayed = reply.replayed === true;
    if (!wireSchema) return { status, body: undefined, replayed };
    const body = give(reply, request, result.data);
    conform?.(body);
    return { status, body, replayed };
  };
}

/** The arguments of a row that says nothing of its own: names on the wire are names in the document. */
export function plainArguments({ path, query, body, idempotencyKey }: WireRequest): Record<string, unknown> {
  return {
    ...query,
    ...path,
    ...(body === null ? {} : { input: body }),
    ...(idempotencyKey === null ? {} : { idempotency_key: idempotencyKey }),
  };
}

const same = (reply: Reply): unknown => reply;

function operationOf(document: DocumentNode, id: string): OperationDefinitionNode {
  const operation = getOperationAST(document);
  if (!operation) throw new Error(`the document of ${id} must hold exactly one operation`);
  return operation;
}

function soleSuccess({ id, successes }: Operation): number {
  if (successes.length !== 1) throw new Error(`${id} documents ${successes.length} successes: its row must say which`);
  return successes[0]!;
}
