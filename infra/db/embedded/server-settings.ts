import { totalmem } from "node:os";

/**
 * PostgreSQL's parameters, given on its command line, so that a new release's values hold for an old data folder too.
 * `durable: false` gives up the promise that a commit survives a power cut; only tests do that.
 */
export function serverSettings(
  port: number,
  socketFolder: string | null,
  durable: boolean,
): Record<string, string | number> {
  const memoryMb = totalmem() / 1024 / 1024;
  return {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: socketFolder ?? "",
    max_connections: 200,
    shared_buffers: `${Math.round(Math.min(512, Math.max(32, memoryMb / 16)))}MB`,
    effective_cache_size: `${Math.round(memoryMb / 4)}MB`,
    work_mem: "8MB",
    maintenance_work_mem: "64MB",
    random_page_cost: 1.1,
    jit: "off",
    timezone: "UTC",
    log_timezone: "UTC",
    log_checkpoints: "off",
    // Statements and rows may hold customers' data: neither belongs into a log.
    log_error_verbosity: "terse",
    log_min_error_statement: "panic",
    ...(durable ? {} : { fsync: "off", full_page_writes: "off" }),
  };
}
