import { getOperationAST } from "graphql";
import { COMMON, type RefusalKind, Refused } from "../infra/kernel/refusal.ts";
import { callerOf } from "./caller.ts";
import type { Envelope, Method } from "./contract.ts";
import type { Compilation, Handler } from "./handlers.ts";
import type { Reply } from "./row.ts";
import { GraphRefused } from "./wire/errors.ts";

/** A path that real clients call although the contract does not have it: answered, or refused by name with a way out. */
export type Extension = {
  readonly methods: readonly Method[];
  /** As in the contract; a last `*` takes the rest. */
  readonly path: string;
  readonly envelope?: Envelope;
  /** Answers without credentials. */
  readonly open?: boolean;
} & ({ readonly refuse: RefusalKind } | { readonly document: string; readonly give?: (reply: Reply) => unknown });

/** The handler of an extension. Documents of extensions take no variables. */
export function extensionHandler({ documents, ports }: Compilation, extension: Extension): Handler {
  if ("refuse" in extension) {
    const { refuse } = extension;
    return async () => {
      throw new Refused(refuse);
    };
  }
  const document = documents.get(extension.document);
  if (!document || !getOperationAST(document))
    throw new Error(`schema/operations has no document ${extension.document}.graphql`);
  const { give = (reply) => reply } = extension;
  return async (request, reply) => {
    const result = await ports.execute({
      document,
      variables: {},
      ...callerOf(request, reply),
    });
    if (result.errors?.length) throw new GraphRefused(result.errors[0]!);
    if (result.data?.reply === null || result.data?.reply === undefined) throw new Refused(COMMON.not_found);
    return reply.send(give(result.data.reply));
  };
}
