"""Functions of the database that answer named site queries across workspaces: ids and counts, never content (contracts.md B)."""

from django.db import migrations

# Which workspaces have something to do. Runs with the rights of its owner, so that row security does not hide the rows; hence the pinned
# search_path, and figures only.
CREATE = """
CREATE FUNCTION lab_site_busy()
RETURNS TABLE (workspace_id uuid, open_attempts bigint, queued bigint, events bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT
        w.id,
        (SELECT count(*) FROM public.runs_attempt a WHERE a.workspace_id = w.id AND a.status IN ('created', 'submitted', 'running')),
        (SELECT count(*) FROM public.runs_queueitem q WHERE q.workspace_id = w.id AND q.available_at <= now()),
        coalesce((SELECT h.sequence FROM public.workspaces_audithead h WHERE h.workspace_id = w.id), 0)
    FROM public.workspaces_workspace w
$$;
"""
# The no-login role that bypasses row security and can do nothing else owns it, where there is one; else the owner of the tables, who bypasses
# row security as well. A new owner of a function needs CREATE on its schema for that moment.
OWNED_BY_SEARCH_ROLE = """
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'labsite_search' AND pg_has_role(current_user, oid, 'MEMBER')) THEN
        GRANT CREATE ON SCHEMA public TO labsite_search;
        ALTER FUNCTION lab_site_busy() OWNER TO labsite_search;
        REVOKE CREATE ON SCHEMA public FROM labsite_search;
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'lab_site_busy() stays with %', current_user;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_nouns")]
    operations = [migrations.RunSQL(CREATE, "DROP FUNCTION lab_site_busy()"), migrations.RunSQL(OWNED_BY_SEARCH_ROLE, migrations.RunSQL.noop)]
