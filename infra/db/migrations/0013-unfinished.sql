-- What is unfinished among what is kept for months, found without reading all of it.
create index workload_unsettled on compute.workload (terminal_at) where terminal_at is not null and settled_at is null;
create index placement_ended on compute.placement (tenant_id, id) where state = 'ended';
create index placement_log_uncommitted on compute.placement (id) where log_complete and log_committed_at is null and log_removed_at is null;
create index asset_deleted on data.asset (deleted_at) where state = 'deleted';
