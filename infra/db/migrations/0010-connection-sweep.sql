-- Which deleted connections are due to be forgotten, and whether anything refers to one.
create index connection_deleted on data.connection (deleted_at) where deleted_at is not null;
create index query_export_connection on data.query_export (connection_id);
create index sink_load_connection on data.sink_load (connection_id);
