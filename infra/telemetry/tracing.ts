import { type Attributes, type Span, SpanStatusCode, trace } from "@opentelemetry/api";

/**
 * Runs `work` as a span of the process's OpenTelemetry provider. Without one (none is bundled: an operator preloads an
 * SDK with `NODE_OPTIONS=--import`) this costs next to nothing and records nothing.
 */
export async function inSpan<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>): Promise<T> {
  return trace.getTracer("nodus").startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: (error as Error).name });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** The id of the active trace, to tie a log line to it; null when nothing traces. */
export function traceId(): string | null {
  return trace.getActiveSpan()?.spanContext().traceId ?? null;
}
