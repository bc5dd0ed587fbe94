import { COMMON, Refused } from "../../infra/kernel/refusal.ts";
import { isIntrospectionOnly } from "../introspection.ts";
import type { GatewayPlugin } from "./plugin.ts";

/** Nobody without a key reads data; the graph's own types may be read without one, where introspection is on. */
export function authentication(introspection: boolean): GatewayPlugin {
  return {
    name: "authentication",
    admit({ actor, document, definition }) {
      if (actor || (introspection && isIntrospectionOnly(document, definition))) return;
      throw new Refused(COMMON.unauthorized);
    },
  };
}
