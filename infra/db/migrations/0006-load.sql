-- Loads of outputs into tables of the teams' own, one row for all tries of an output.
create table data.sink_load (id text not null, tenant_id text not null, workload_id text not null, stage_id text not null, generation int not null, name text not null, connection_id text not null, secret_id text not null, secret_version int not null, target_table text not null, path text not null, sha256 text not null, bytes bigint not null, is_tar boolean not null, state text not null, row_count bigint null, error text null, attempts int not null, fence int not null, lease_until timestamptz(3) null, queued_at timestamptz(3) not null, run_state text not null, created_at timestamptz(3) not null, started_at timestamptz(3) null, ended_at timestamptz(3) null, primary key (id));
create unique index sink_load_output on data.sink_load (workload_id, stage_id, generation, name);
-- What the reconciler looks at: nothing of a load that is over and whose run has its last figures.
create index sink_load_unfinished on data.sink_load (created_at) where state in ('pending', 'loading');
create index sink_load_run_due on data.sink_load (queued_at) where run_state = 'due';
alter table data.sink_load add constraint sink_load_state_check check (state in ('pending', 'loading', 'loaded', 'failed'));
alter table data.sink_load add constraint sink_load_run_state_check check (run_state in ('none', 'open', 'due', 'final', 'lost'));
