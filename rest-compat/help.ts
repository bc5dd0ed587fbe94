import type { FastifyInstance } from "fastify";
import type { RefusalKind } from "../infra/kernel/refusal.ts";

/** Where the page of error codes is served. */
const HELP_PATH = "/help/errors";

/** The address of a code on that page; `publicUrl` is the deployment's origin without a slash at its end. */
export function helpUrl(publicUrl: string): (code: string) => string {
  return (code) => `${publicUrl}${HELP_PATH}#${encodeURIComponent(code)}`;
}

/** Serves one page that explains every error code, which is what an error's `url` leads to. */
export async function serveErrorHelp(app: FastifyInstance, kinds: Iterable<RefusalKind>): Promise<void> {
  const page = helpPage(kinds);
  app.get(HELP_PATH, async (_request, reply) =>
    reply.headers({ "Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff" }).send(page),
  );
}

const FIELD = `<p><code>field</code> is a JSON pointer to what is to blame. Its members are in the spelling of REST on both faces.</p>
<p>REST: it leads into the body, such as <code>/policy/egress_allow</code>; for a parameter of the path or the query it is <code>/</code> and its name, such as <code>/limit</code>. What is wrong with a header, such as <code>Idempotency-Key</code>, has no <code>field</code>.</p>
<p>GraphQL: <code>extensions.field</code> leads into the mutation's input, into <code>workload</code> where it has one: <code>/policy/egress_allow</code> is <code>workload.policy.egressAllow</code>, and <code>/idempotency_key</code> is <code>idempotencyKey</code>.</p>`;

/** The page itself: each code once, in order, with its status, what it means and what to do. */
export function helpPage(kinds: Iterable<RefusalKind>): string {
  const byCode = new Map([...kinds].map((kind) => [kind.code, kind]));
  const sections = [...byCode.values()]
    .sort((a, b) => (a.code < b.code ? -1 : 1))
    .map(
      ({ code, status, message, fix }) =>
        `<h2 id="${html(code)}">${html(code)} (${status})</h2>\n<p>${html(message)}</p>\n<p>${html(fix)}</p>`,
    );
  return `<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Nodus: error codes</title>\n<h1>Error codes</h1>\n${FIELD}\n${sections.join("\n")}\n</html>\n`;
}

function html(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
