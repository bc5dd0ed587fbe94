import type { FastifyReply, FastifyRequest } from "fastify";
import { answerError } from "./answer.ts";
import { helpUrl } from "./help.ts";

/** Longest path value that is routed; the router's own limit would make a documented secret name an unknown path. */
const MAX_PATH_VALUE_LENGTH = 1024;

/** What the server around the REST face must be made with: no plugin can set these afterwards. */
export const REST_SERVER_OPTIONS = {
  routerOptions: { maxParamLength: MAX_PATH_VALUE_LENGTH },
  /** Answers what is refused before there is a route, such as a path that cannot be decoded; its help is a path. */
  frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply): void => {
    answerError(error, request, reply, { envelope: "general", helpUrl: helpUrl("") });
  },
};

/** Throws unless a server was made with them. */
export function requireServerOptions(initialConfig: {
  readonly routerOptions?: { readonly maxParamLength?: number };
}): void {
  const { maxParamLength = 0 } = initialConfig.routerOptions ?? {};
  if (maxParamLength < MAX_PATH_VALUE_LENGTH)
    throw new Error("make the Fastify server of the REST face with REST_SERVER_OPTIONS");
}
