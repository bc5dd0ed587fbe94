-- Exports of queries into assets.
create table data.query_export (id text not null, tenant_id text not null, asset_id text not null, connection_id text not null, secret_id text not null, secret_version int not null, sql text null, query_hash text not null, branch text null, format text not null, state text not null, row_count bigint null, bytes bigint null, created_at timestamptz(3) not null, started_at timestamptz(3) null, deadline_at timestamptz(3) not null, queued_at timestamptz(3) not null, fence int not null, lease_until timestamptz(3) null, object_sha256 text null, ended_at timestamptz(3) null, cleaned_at timestamptz(3) null, primary key (id));
create index query_export_asset on data.query_export (asset_id);
create index query_export_reuse on data.query_export (tenant_id, connection_id, query_hash) where state = 'ready';
-- What the reconciler looks at: nothing of an export that is over and clean.
create index query_export_unfinished on data.query_export (state, created_at) where state <> 'ready' and cleaned_at is null;
alter table data.query_export add constraint query_export_format_check check (format in ('parquet', 'csv'));
alter table data.query_export add constraint query_export_state_check check (state in ('pending', 'running', 'cleanup', 'ready'));
