# A cluster of its own, made, used over a Unix socket and stopped. PostgreSQL refuses to run as root.
set -euo pipefail
bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -n 1)
as() { "$@"; }
if [ "$(id -u)" = 0 ]; then
    chown -R postgres .
    as() { setpriv --reuid=postgres --regid=postgres --clear-groups env HOME="$PWD" "$@"; }
fi
as "$bin/initdb" -D data -U postgres --no-locale -E UTF8 -A trust -N >init.log
settings="-k $PWD -h '' -c shared_buffers=32MB -c work_mem=32MB -c fsync=off -c jit=off"
as "$bin/pg_ctl" -D data -w -t 300 -l server.log -o "$settings" start >start.log
trap 'as "$bin/pg_ctl" -D data -m immediate stop >/dev/null 2>&1 || true' EXIT
as "$bin/psql" -X -h "$PWD" -U postgres -At -f work.sql
as "$bin/pg_ctl" -D data -w -t 300 -m fast stop >stop.log
trap - EXIT
