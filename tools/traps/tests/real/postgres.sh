# A cluster of its own: `init` makes it, otherwise it is used over a Unix socket and stopped.
# PostgreSQL refuses to run as root.
set -euo pipefail
bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -n 1)
as() { "$@"; }
if [ "$(id -u)" = 0 ]; then
    chown -R postgres .
    as() { setpriv --reuid=postgres --regid=postgres --clear-groups env HOME="$PWD" "$@"; }
fi
if [ "${1-}" = init ]; then
    as "$bin/initdb" -D data -U postgres --no-locale -E UTF8 -A trust -N >init.log
    exit
fi
settings="-k $PWD -h '' -c shared_buffers=8MB -c work_mem=64MB -c fsync=off -c jit=off -c autovacuum=off"
as "$bin/pg_ctl" -D data -w -t 300 -l server.log -o "$settings" start >start.log
trap 'as "$bin/pg_ctl" -D data -m immediate stop >/dev/null 2>&1 || true' EXIT
as "$bin/psql" -X -h "$PWD" -U postgres -At -f work.sql
as "$bin/pg_ctl" -D data -w -t 300 -m fast stop >stop.log
trap - EXIT
