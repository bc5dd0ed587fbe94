-- Which beat was the last one when a machine was seen gone: whether another has come must not depend on two clocks.
alter table "compute"."attempt" add column "gone_seen_beat_at" timestamptz(3) null;
