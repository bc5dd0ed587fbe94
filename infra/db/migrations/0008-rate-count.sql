-- Requests of each API key in the second that runs, where several gateways share their limits without Redis.
-- Unlogged: counts are worth nothing after a crash, and a request must not wait for the disk.
create unlogged table infra.rate_count (
  key text primary key,
  points integer not null,
  ends_at timestamptz not null
);
